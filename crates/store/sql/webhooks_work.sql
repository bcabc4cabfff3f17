-- Whether there is anything to do: an active webhook, an end in the queue, or an event.
SELECT EXISTS (SELECT FROM webhooks WHERE state = 'active')
    OR EXISTS (SELECT FROM untold_ends)
    OR EXISTS (SELECT FROM webhook_events) AS "any!"
