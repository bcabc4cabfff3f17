-- New messages.
INSERT INTO messages (
    tenant, conversation, seq, task_id, at, role, content, thought, calls, call_id, tool, class, by_redial, provider)
SELECT
    tenant, conversation, seq, task_id, $5, role, content, thought, calls::json, call_id, tool, class, by_redial,
    provider::json
FROM UNNEST(
    $1::text[], $2::text[], $3::int[], $4::uuid[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
    $11::text[], $12::text[], $13::boolean[], $14::text[]
) AS i (tenant, conversation, seq, task_id, role, content, thought, calls, call_id, tool, class, by_redial, provider)
