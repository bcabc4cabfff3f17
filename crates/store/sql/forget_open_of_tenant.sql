-- Tasks of a tenant that have not ended.
(SELECT id AS "id!" FROM tasks WHERE tenant = $1 AND state = 'running' AND submitted_at <= $2 LIMIT $3)
UNION ALL
(SELECT id FROM tasks WHERE tenant = $1 AND state = 'waiting' AND submitted_at <= $2 LIMIT $3)
