-- Locks the next $4 tasks of a tenant, from this conversation on.
SELECT id AS "id!", conversation AS "conversation!", finished_at IS NULL AS "open!"
FROM tasks
WHERE tenant = $1 AND conversation >= $2 AND submitted_at <= $3
ORDER BY conversation, submitted_at, id
LIMIT $4
FOR UPDATE
