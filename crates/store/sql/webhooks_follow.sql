-- Events for calls $1 and tasks $2, which have ended. Deliveries raise none; neither do turns of models, whose tasks do.
WITH ends AS (
    SELECT c.tenant, c.id, 'call' AS kind, c.state, c.finished_at, c.tool, NULL AS agent
    FROM UNNEST($1::uuid[]) AS i (id)
    JOIN calls c ON c.id = ANY (ARRAY[i.id])
    WHERE c.tool <> $3 AND NOT starts_with(c.tool, $4)
    UNION ALL
    SELECT t.tenant, t.id, 'task', t.state, t.finished_at, NULL, t.agent
    FROM UNNEST($2::uuid[]) AS i (id)
    JOIN tasks t ON t.id = ANY (ARRAY[i.id])
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
