-- Locks the next $5 tasks of a scope, from this conversation on.
SELECT id AS "id!", conversation AS "conversation!", finished_at IS NULL AS "open!"
FROM tasks
WHERE tenant = $1 AND ($2::text IS NULL OR conversation = $2) AND conversation >= $3 AND submitted_at <= $4
ORDER BY conversation, submitted_at, id
LIMIT $5
FOR UPDATE
