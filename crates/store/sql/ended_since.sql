-- Calls and tasks of tenant $1 that ended at $2 with an id after $3, or later: the first $4, in the order of their ends.
SELECT id AS "id!", is_task AS "is_task!", name, state AS "state!", class, attempts, task, at AS "at!"
FROM (
    (SELECT id, false AS is_task, tool AS name, state, class, attempt AS attempts, task_id AS task, finished_at AS at
     FROM calls
     WHERE tenant = $1 AND finished_at >= $2 AND (finished_at, id) > ($2, $3)
     ORDER BY finished_at, id LIMIT $4)
    UNION ALL
    (SELECT id, true, agent, state, code, NULL, NULL, finished_at
     FROM tasks
     WHERE tenant = $1 AND finished_at >= $2 AND (finished_at, id) > ($2, $3)
     ORDER BY finished_at, id LIMIT $4)
) ended
ORDER BY at, id LIMIT $4
