-- The messages of a conversation that earlier tasks wrote, in order.
SELECT
    m.seq, m.task_id AS task, m.at, m.role, m.content, m.thought, m.calls::text, m.call_id, m.tool, m.class, m.by_redial,
    m.provider::text
FROM messages m
WHERE m.tenant = $1 AND m.conversation = $2
    AND m.seq < (SELECT min(o.seq) FROM messages o WHERE o.tenant = $1 AND o.conversation = $2 AND o.task_id = $3)
ORDER BY m.seq
