-- The next tasks of a tenant, newest first, at most $3; those that are the newest of their conversation stand for it.
WITH looked AS MATERIALIZED (
    SELECT id, conversation, submitted_at, state, agent, finished_at
    FROM tasks
    WHERE tenant = $1 AND ($2::uuid IS NULL OR id < $2)
    ORDER BY id DESC
    LIMIT $3)
SELECT
    l.id AS "task!", l.conversation AS "conversation!", l.submitted_at AS "submitted_at!", l.state AS "state!", l.agent,
    l.finished_at,
    NOT EXISTS (
        SELECT FROM tasks n
        WHERE n.tenant = $1 AND n.conversation = l.conversation AND n.submitted_at >= l.submitted_at
            AND n.id > l.id) AS "is_newest!",
    COALESCE((
        SELECT m.seq FROM messages m
        WHERE m.tenant = $1 AND m.conversation = l.conversation
        ORDER BY m.seq DESC
        LIMIT 1), 0) AS "messages!"
FROM looked l
ORDER BY l.id DESC
