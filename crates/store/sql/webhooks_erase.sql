-- Deletes the webhooks that a tenant had at $2, and their events.
WITH gone AS (
    DELETE FROM webhooks WHERE tenant = $1 AND created_at <= $2 RETURNING tenant, id
)
DELETE FROM webhook_events e USING gone g WHERE e.tenant = g.tenant AND e.webhook = g.id
