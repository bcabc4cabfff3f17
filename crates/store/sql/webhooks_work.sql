-- Whether there is anything to do: an active webhook, an event that has not ended, or a progress to forget.
SELECT EXISTS (SELECT FROM webhooks WHERE state = 'active')
    OR EXISTS (SELECT FROM webhook_events)
    OR EXISTS (SELECT FROM webhook_progress WHERE followed_until IS NOT NULL) AS "any!"
