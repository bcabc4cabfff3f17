-- The first calls and tasks whose ids lie between two ids. Both are ranges of a primary key.
(SELECT c.id AS "id!", false AS "is_task!", c.tool AS name, c.state AS "state!", c.submitted_at AS "submitted_at!"
FROM calls c
WHERE c.id >= $1 AND c.id <= $2
ORDER BY c.id
LIMIT $3)
UNION ALL
(SELECT t.id, true, t.agent, t.state, t.submitted_at
FROM tasks t
WHERE t.id >= $1 AND t.id <= $2
ORDER BY t.id
LIMIT $3)
