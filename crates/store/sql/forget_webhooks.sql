-- Deletes the webhooks of a tenant that were created before $2, with their events.
WITH gone AS (
    DELETE FROM webhooks WHERE tenant = $1 AND created_at <= $2 RETURNING id
)
DELETE FROM webhook_events e USING gone WHERE e.tenant = $1 AND e.webhook = gone.id
