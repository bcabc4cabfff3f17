-- The calls of functions that a task of the tenant asked its client for, in order.
SELECT c.id AS "id!", c.turn AS "turn!", c.call_index AS "call_index!", c.state AS "state!"
FROM calls_of_tasks c
WHERE c.task_id = $1 AND c.tenant = $2 AND c.pool = $3
ORDER BY c.turn, c.call_index
