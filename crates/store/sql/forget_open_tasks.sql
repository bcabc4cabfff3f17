-- Tasks of a scope that have not ended, and whether each is asked to stop.
SELECT t.id AS "id!", (SELECT i.id FROM task_inbox i WHERE i.task_id = t.id AND i.kind = 'cancel' LIMIT 1) IS NOT NULL AS "is_asked!"
FROM (
    (SELECT id FROM tasks
     WHERE tenant = $1 AND ($2::text IS NULL OR conversation = $2) AND state = 'running' AND submitted_at <= $3 LIMIT $4)
    UNION ALL
    (SELECT id FROM tasks
     WHERE tenant = $1 AND ($2::text IS NULL OR conversation = $2) AND state = 'waiting' AND submitted_at <= $3 LIMIT $4)
) t
