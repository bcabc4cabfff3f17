-- Events that wait for their delivery, the oldest first: one of each tenant in turn, and within a tenant one of each webhook. Of
-- each webhook at most $1, and no more than would make $2 open deliveries; $4, once its tenant has $3 open deliveries.
SELECT
    e.tenant AS "tenant!", e.webhook AS "webhook!", e.subject AS "subject!", e.event AS "event!", e.at AS "at!",
    e.url AS "url!", e.key_id AS "key_id!", e.secret_version AS "secret_version!", e.previous_until
FROM (
    SELECT DISTINCT tenant FROM webhooks d
    WHERE state = 'active' AND EXISTS (SELECT FROM webhook_events q WHERE q.tenant = d.tenant AND q.delivery IS NULL)
) t
CROSS JOIN LATERAL (
    SELECT CASE WHEN count(*) < $3::bigint THEN $2::bigint ELSE $4::bigint END AS most
    FROM (
        SELECT FROM webhook_events o
        WHERE o.tenant = t.tenant AND o.delivery IS NOT NULL
        LIMIT $3::bigint) o
) room
CROSS JOIN LATERAL (
    SELECT
        w.tenant, w.id AS webhook, w.url, w.key_id, w.secret_version, w.previous_until, p.subject, p.event, p.at,
        row_number() OVER (ORDER BY p.turn, p.at) AS turn
    FROM webhooks w
    CROSS JOIN LATERAL (
        SELECT q.subject, q.event, q.at, row_number() OVER (ORDER BY q.at) AS turn
        FROM webhook_events q
        WHERE q.tenant = w.tenant AND q.webhook = w.id AND q.delivery IS NULL
        ORDER BY q.at
        LIMIT LEAST($1::bigint, room.most - (
            SELECT count(*) FROM (
                SELECT FROM webhook_events o
                WHERE o.tenant = w.tenant AND o.webhook = w.id AND o.delivery IS NOT NULL
                LIMIT room.most) o))
    ) p
    WHERE w.tenant = t.tenant AND w.state = 'active'
    ORDER BY p.turn, p.at
    LIMIT $5::bigint
) e
-- They would be refused (webhooks_take.sql), and stay before those of other tenants.
WHERE NOT EXISTS (SELECT FROM tombstones d WHERE d.tenant = t.tenant AND d.erased_at IS NULL)
ORDER BY e.turn, e.at
LIMIT $5::bigint
