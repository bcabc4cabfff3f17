-- Events for what ended from $1 on and before $2. Deliveries raise none; neither do turns of models, whose tasks do.
WITH ends AS (
    SELECT c.tenant, c.id, 'call' AS kind, c.state, c.finished_at, c.tool, NULL AS agent
    FROM calls c
    WHERE c.finished_at >= $1 AND c.finished_at < $2 AND c.tool <> $3 AND NOT starts_with(c.tool, $4)
    UNION ALL
    SELECT t.tenant, t.id, 'task', t.state, t.finished_at, NULL, t.agent
    FROM (SELECT DISTINCT tenant FROM webhooks WHERE state = 'active') w
    JOIN tasks t ON t.tenant = w.tenant
    WHERE t.finished_at >= $1 AND t.finished_at < $2
)
INSERT INTO webhook_events (tenant, webhook, subject, event, at)
SELECT w.tenant, w.id, e.id, e.kind || '.' || e.state, e.finished_at
FROM ends e
JOIN webhooks w ON w.tenant = e.tenant
WHERE w.state = 'active'
    AND e.finished_at >= w.since
    AND w.events && ARRAY[e.kind || '.*', e.kind || '.' || e.state]
    AND (e.kind <> 'call' OR w.tools = '{}' OR e.tool = ANY (w.tools))
    AND (e.kind <> 'task' OR w.agents = '{}' OR e.agent = ANY (w.agents))
ON CONFLICT DO NOTHING
