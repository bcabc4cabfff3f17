-- Deletes the webhooks that a tenant had at $2, and their events; also events of webhooks that were deleted before.
WITH gone AS (
    DELETE FROM webhooks WHERE tenant = $1 AND created_at <= $2 RETURNING id
)
DELETE FROM webhook_events e
WHERE e.tenant = $1 AND (e.at <= $2 OR EXISTS (SELECT FROM gone g WHERE g.id = e.webhook))
