-- What models answered in these turns of a task, as far as it is no longer than $3 bytes.
SELECT t.turn AS "turn!", CASE WHEN octet_length(a.output::text) <= $3 THEN a.output::text END AS reply
FROM calls_of_tasks t
JOIN attempts a ON a.call_id = t.id AND a.attempt = t.attempt
WHERE t.task_id = $1 AND t.turn = ANY ($2) AND t.call_index = 0 AND t.state = 'succeeded'
