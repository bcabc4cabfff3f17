-- New calls that need no other table: without a key, a refusal or a task, and not redrives. The same as submit.sql writes of them, for
-- two thirds of Postgres's time; but an id that is on record already is an error.
INSERT INTO calls (
    id, state, wake_at, tool, pool, effect, tenant, content, conversation, arguments, timeout_ms, retry, notify,
    traceparent, submitted_at, published_at, deadline_at, repairs, consumer, publish_no, backlog_at, undeclared, help, submitted_by,
    tool_version)
SELECT
    i.id, 'ready',
    t.now + CASE WHEN i.consumer IS NULL THEN i.deadline_ms ELSE LEAST($1::bigint, i.deadline_ms) END * interval '1 ms',
    i.tool, i.pool, i.effect, i.tenant, i.content, i.conversation, i.arguments::json, i.timeout_ms, i.retry::json, i.notify,
    i.traceparent, t.now, CASE WHEN i.consumer IS NOT NULL THEN t.now END, t.now + i.deadline_ms * interval '1 ms', i.repairs::json,
    i.consumer, (i.consumer IS NOT NULL)::int, CASE WHEN i.consumer IS NULL THEN t.now END, i.undeclared::json, i.help::json,
    i.submitted_by, i.tool_version
FROM UNNEST(
        $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::text[], $9::text[], $10::text[], $11::bigint[],
        $12::text[], $13::boolean[], $14::text[], $15::bigint[], $16::text[], $17::text[], $18::text[], $19::text[], $20::uuid[]
    ) AS i (id, tool, pool, effect, tenant, content, conversation, arguments, repairs, timeout_ms,
            retry, notify, traceparent, deadline_ms, consumer, undeclared, help, submitted_by, tool_version),
    (SELECT clock_timestamp() AS now) t
