-- Deletes the inbox items of tasks that are not on record any more.
DELETE FROM task_inbox i
WHERE i.task_id = ANY ($1) AND (SELECT t.id FROM tasks t WHERE t.id = i.task_id) IS NULL
