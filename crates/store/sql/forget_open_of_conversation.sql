-- Tasks of a conversation that have not ended.
(SELECT id AS "id!" FROM tasks
 WHERE tenant = $1 AND conversation = $2 AND state = 'running' AND submitted_at <= $3 LIMIT $4)
UNION ALL
(SELECT id FROM tasks
 WHERE tenant = $1 AND conversation = $2 AND state = 'waiting' AND submitted_at <= $3 LIMIT $4)
