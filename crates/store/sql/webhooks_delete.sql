-- Deletes a webhook and what waits for it. Events with a delivery stay, so that the leader finds what it has to cancel
-- (webhooks_abandoned.sql). How many deliveries have not ended is the answer.
WITH gone AS (
    DELETE FROM webhooks WHERE tenant = $1 AND id = $2 RETURNING tenant, id
), dropped AS (
    DELETE FROM webhook_events e USING gone g WHERE e.tenant = g.tenant AND e.webhook = g.id AND e.delivery IS NULL
)
SELECT (
    SELECT count(*)
    FROM webhook_events e
    JOIN calls c ON c.id = e.delivery
    WHERE e.tenant = g.tenant AND e.webhook = g.id AND e.delivery IS NOT NULL AND c.finished_at IS NULL
) AS "open!"
FROM gone g
