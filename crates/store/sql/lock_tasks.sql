-- The tasks of a batch; waits for those that another transaction has locked. Their texts, of up to 4 MiB, are needed by those that begin.
SELECT
    id, tenant, conversation, state, language, spec::text AS "spec!", progress::text, last_step, submitted_at, wake_at, traceparent,
    CASE WHEN state = 'waiting' THEN input ELSE '' END AS "input!", clock_timestamp() AS "read_at!"
FROM tasks
WHERE id = ANY ($1)
ORDER BY id
FOR UPDATE
