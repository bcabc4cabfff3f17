-- Up to $1 open deliveries that are to be cancelled: their webhook is deleted or disabled, or was enabled again since their events.
-- Almost all events are of active webhooks, so those are dropped before calls are looked at.
WITH abandoned AS MATERIALIZED (
    SELECT e.delivery
    FROM webhook_events e
    LEFT JOIN webhooks w ON w.tenant = e.tenant AND w.id = e.webhook AND w.state = 'active'
    WHERE e.delivery IS NOT NULL AND (w.since IS NULL OR w.since > e.at)
)
SELECT c.id AS "delivery!"
FROM abandoned a
JOIN calls c ON c.id = a.delivery
WHERE c.finished_at IS NULL AND NOT c.cancel_requested
LIMIT $1
