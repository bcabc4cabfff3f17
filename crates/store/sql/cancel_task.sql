-- Puts a cancel into the inbox of a task, unless it has ended. The answer holds its state, and whether nobody had asked before.
WITH found AS (
    SELECT
        t.id, t.state, t.finished_at,
        (SELECT i.id FROM task_inbox i WHERE i.task_id = t.id AND i.kind = 'cancel' LIMIT 1) IS NOT NULL AS is_asked
    FROM tasks t
    WHERE t.id = $1 AND t.tenant = $2
), notified AS (
    INSERT INTO task_inbox (task_id, kind) SELECT id, 'cancel' FROM found WHERE finished_at IS NULL
)
SELECT state AS "state!", finished_at IS NULL AND NOT is_asked AS "is_new!" FROM found
