-- The next $4 calls behind $2: which of them are the tenant's, and of what was submitted before $3, as in
-- forget_look_at_conversation.sql.
SELECT
    c.id AS "id!",
    c.tenant = $1 AND (c.submitted_at <= $3 OR CASE
        WHEN c.task_id IS NOT NULL THEN
            (SELECT t.id FROM tasks t WHERE t.id = c.task_id AND t.submitted_at > $3) IS NULL
        WHEN c.redrive_of IS NOT NULL THEN
            (SELECT o.id FROM calls o
             WHERE o.id = c.redrive_of AND o.submitted_at > $3 AND o.redrive_of IS NULL AND o.task_id IS NULL) IS NULL
        ELSE false END) AS "is_of_scope!",
    c.wake_at IS NOT NULL AS "open!"
FROM calls c
WHERE c.id > $2
ORDER BY c.id
LIMIT $4
