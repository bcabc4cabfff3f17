-- Webhooks of a tenant: one of them, or a page in the order of their ids.
SELECT
    id AS "id!", url AS "url!", events AS "events!", tools AS "tools!", agents AS "agents!", state AS "state!", reason,
    key_id AS "key_id!", secret_version AS "secret_version!", previous_until, created_at AS "created_at!",
    created_by AS "created_by!", changed_at AS "changed_at!", content AS "content!"
FROM webhooks
WHERE tenant = $1 AND ($2::uuid IS NULL OR id = $2)
ORDER BY id
LIMIT $3
