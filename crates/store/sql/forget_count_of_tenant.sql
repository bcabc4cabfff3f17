-- The next $5 tasks of a tenant behind a position, each with what belongs to it.
SELECT
    t.id AS "id!", t.conversation AS "conversation!", t.submitted_at AS "submitted_at!",
    t.finished_at IS NULL AS "open!", t.key IS NOT NULL AS "has_key!",
    (SELECT count(*) FROM messages m WHERE m.task_id = t.id) AS "messages!",
    (SELECT count(*) FROM task_steps s WHERE s.task_id = t.id) AS "steps!"
FROM tasks t
WHERE t.tenant = $1 AND (t.conversation, t.submitted_at, t.id) > ($2, $3, $4)
ORDER BY t.conversation, t.submitted_at, t.id
LIMIT $5
