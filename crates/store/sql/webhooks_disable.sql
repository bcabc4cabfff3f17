-- Disables an active webhook, if it was active before $4, and drops what waits for it. The leader cancels what is under way
-- (webhooks_abandoned.sql).
WITH disabled AS (
    UPDATE webhooks
    SET state = 'disabled', reason = $3, changed_at = clock_timestamp()
    WHERE tenant = $1 AND id = $2 AND state = 'active' AND since <= $4
    RETURNING tenant, id
), dropped AS (
    DELETE FROM webhook_events e USING disabled d WHERE e.tenant = d.tenant AND e.webhook = d.id AND e.delivery IS NULL
)
SELECT true AS "disabled!" FROM disabled
