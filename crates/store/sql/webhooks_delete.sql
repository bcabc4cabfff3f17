-- Deletes a webhook and what waits for it; the ids of the deliveries that have not ended are the answer.
WITH gone AS (
    DELETE FROM webhooks WHERE tenant = $1 AND id = $2 RETURNING tenant, id
), events AS (
    DELETE FROM webhook_events e USING gone g WHERE e.tenant = g.tenant AND e.webhook = g.id RETURNING e.delivery, e.ended
)
SELECT ARRAY(SELECT delivery FROM events WHERE delivery IS NOT NULL AND NOT ended) AS "open!" FROM gone
