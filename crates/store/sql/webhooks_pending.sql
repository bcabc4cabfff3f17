-- The oldest events that wait for their delivery: of each webhook at most $1, and no more than would make $2 open deliveries.
SELECT
    e.tenant AS "tenant!", e.webhook AS "webhook!", e.subject AS "subject!", e.event AS "event!", e.at AS "at!",
    w.url AS "url!", w.key_id AS "key_id!", w.secret_version AS "secret_version!", w.previous_until
FROM webhooks w
CROSS JOIN LATERAL (
    SELECT p.tenant, p.webhook, p.subject, p.event, p.at
    FROM webhook_events p
    WHERE p.tenant = w.tenant AND p.webhook = w.id AND p.delivery IS NULL
    ORDER BY p.at
    LIMIT LEAST($1::bigint, $2::bigint - (
        SELECT count(*) FROM (
            SELECT FROM webhook_events o
            WHERE o.tenant = w.tenant AND o.webhook = w.id AND o.delivery IS NOT NULL AND NOT o.ended
            LIMIT $2::bigint) o))
) e
WHERE w.state = 'active'
    -- They would be refused (webhooks_take.sql), and stay before those of other tenants.
    AND NOT EXISTS (SELECT FROM tombstones t WHERE t.tenant = w.tenant AND t.erased_at IS NULL)
ORDER BY e.at
LIMIT $3
