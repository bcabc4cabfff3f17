-- Deletes tasks whose messages and steps are deleted, with what is left in their inboxes.
WITH inboxes AS (
    DELETE FROM task_inbox WHERE task_id = ANY ($1)
), offers AS (
    DELETE FROM turn_tools WHERE task_id = ANY ($1)
), gone AS (
    DELETE FROM tasks WHERE id = ANY ($1) AND finished_at IS NOT NULL RETURNING key, submitted_at
)
SELECT count(*) AS "tasks!", count(key) AS "keys!", min(submitted_at) AS first, max(submitted_at) AS last FROM gone
