-- Puts a cancel into the inbox of a task, unless it has ended. The answer holds its state.
WITH found AS (
    SELECT id, state, finished_at FROM tasks WHERE id = $1 AND tenant = $2
), notified AS (
    INSERT INTO task_inbox (task_id, kind) SELECT id, 'cancel' FROM found WHERE finished_at IS NULL
)
SELECT state FROM found
