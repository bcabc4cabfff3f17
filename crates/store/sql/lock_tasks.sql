-- The tasks of a batch, each waited for until it is free.
SELECT
    id, tenant, conversation, state, agent, language, spec::text AS "spec!", input, progress::text, last_step, wake_at,
    traceparent, submitted_at
FROM tasks
WHERE id = ANY ($1)
ORDER BY id
FOR UPDATE
