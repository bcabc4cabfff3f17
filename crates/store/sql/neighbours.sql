-- The ids before and after each of these among calls and tasks.
SELECT
    i.id AS "id!",
    (SELECT c.id FROM calls c WHERE c.id < i.id ORDER BY c.id DESC LIMIT 1) AS call_before,
    (SELECT c.id FROM calls c WHERE c.id > i.id ORDER BY c.id LIMIT 1) AS call_after,
    (SELECT t.id FROM tasks t WHERE t.id < i.id ORDER BY t.id DESC LIMIT 1) AS task_before,
    (SELECT t.id FROM tasks t WHERE t.id > i.id ORDER BY t.id LIMIT 1) AS task_after
FROM UNNEST($1::uuid[]) AS i (id)
