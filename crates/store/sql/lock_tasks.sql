-- The tasks of a batch; waits for those that another transaction has locked.
SELECT
    id, tenant, conversation, state, language, spec::text AS "spec!", input, progress::text, last_step,
    submitted_at, wake_at, traceparent, clock_timestamp() AS "read_at!"
FROM tasks
WHERE id = ANY ($1)
ORDER BY id
FOR UPDATE
