-- Deletes what waits for a webhook that is not active: an event that was written while the webhook was disabled or deleted.
DELETE FROM webhook_events e
WHERE e.delivery IS NULL
    AND NOT EXISTS (SELECT FROM webhooks w WHERE w.tenant = e.tenant AND w.id = e.webhook AND w.state = 'active')
