-- The tasks of a batch that no other transaction has locked; as lock_tasks.sql.
SELECT
    id, tenant, conversation, state, language, spec::text AS "spec!", progress::text, last_step, submitted_at, wake_at, traceparent,
    CASE WHEN state = 'waiting' THEN input ELSE '' END AS "input!", clock_timestamp() AS "read_at!"
FROM tasks
WHERE id = ANY ($1)
ORDER BY id
FOR UPDATE SKIP LOCKED
