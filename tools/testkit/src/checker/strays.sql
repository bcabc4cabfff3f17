-- Rows of a tenant that hold the canary of another one, or belong to a task of another one. Bytes are shown in hex, so those of
-- a dead letter are read as text besides.
WITH texts AS (
    SELECT 'calls' AS place, tenant, id AS call, NULL::uuid AS task, c::text AS text FROM calls c
    UNION ALL
    SELECT 'attempts', c.tenant, c.id, NULL, a::text FROM attempts a JOIN calls c ON c.id = a.call_id
    UNION ALL
    SELECT 'late_reports', c.tenant, c.id, NULL, l::text FROM late_reports l JOIN calls c ON c.id = l.call_id
    UNION ALL
    SELECT 'tasks', tenant, NULL, id, t::text FROM tasks t
    UNION ALL
    SELECT 'task_inbox', t.tenant, NULL, t.id, i::text FROM task_inbox i JOIN tasks t ON t.id = i.task_id
    UNION ALL
    SELECT 'task_steps', t.tenant, NULL, t.id, s::text FROM task_steps s JOIN tasks t ON t.id = s.task_id
    UNION ALL
    SELECT 'messages', tenant, NULL, task_id, m::text FROM messages m
    UNION ALL
    SELECT 'actions', tenant, NULL, NULL, a::text FROM actions a
    UNION ALL
    SELECT 'dead_letters', tenant, NULL, NULL, d::text || encode(payload, 'escape') FROM dead_letters d WHERE tenant IS NOT NULL
)
SELECT DISTINCT place, tenant, call, task, found[1] AS owner
FROM texts CROSS JOIN LATERAL regexp_matches(text, 'canary-of-([A-Za-z0-9_-]*)', 'g') AS found
WHERE strpos(text, 'canary-of-') > 0 AND found[1] <> tenant
UNION ALL
SELECT 'calls', c.tenant, c.id, NULL, t.tenant FROM calls c JOIN tasks t ON t.id = c.task_id WHERE c.tenant <> t.tenant
UNION ALL
SELECT 'messages', m.tenant, NULL, t.id, t.tenant FROM messages m JOIN tasks t ON t.id = m.task_id
WHERE m.tenant <> t.tenant
