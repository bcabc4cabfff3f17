-- Writes new messages. $1: when; from $2 on, one array for each column.
INSERT INTO messages (
    tenant, conversation, seq, task_id, at, role, content, thought, calls, call_id, tool, class, by_redial, provider)
SELECT
    tenant, conversation, seq, task_id, $1, role, content, thought, calls::json, call_id, tool, class, by_redial,
    provider::json
FROM UNNEST(
    $2::text[], $3::text[], $4::int[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
    $11::text[], $12::text[], $13::boolean[], $14::text[]
) AS i (tenant, conversation, seq, task_id, role, content, thought, calls, call_id, tool, class, by_redial, provider)
