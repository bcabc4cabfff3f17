-- Waiting tasks whose turn has come, and what their conversations left for them.
SELECT
    t.id, COALESCE(last.seq, 0) + 1 AS "next_seq!", instructions.content AS "system?", before.progress::text AS carried
FROM tasks t
LEFT JOIN LATERAL (
    SELECT m.seq, m.task_id FROM messages m
    WHERE m.tenant = t.tenant AND m.conversation = t.conversation
    ORDER BY m.seq DESC LIMIT 1
) last ON true
LEFT JOIN LATERAL (
    SELECT m.content FROM messages m
    WHERE m.tenant = t.tenant AND m.conversation = t.conversation AND m.role = 'system'
    ORDER BY m.seq DESC LIMIT 1
) instructions ON true
LEFT JOIN tasks before ON before.id = last.task_id
WHERE t.id = ANY ($1)
    AND NOT EXISTS (
        SELECT FROM tasks o WHERE o.tenant = t.tenant AND o.conversation = t.conversation AND o.state = 'running')
    AND NOT EXISTS (
        SELECT FROM tasks o
        WHERE o.tenant = t.tenant AND o.conversation = t.conversation AND o.state = 'waiting' AND o.id < t.id)
