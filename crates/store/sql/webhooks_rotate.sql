-- Gives a webhook its next secret; the one before signs for $4 seconds more. Nothing changes if its version is not $3.
UPDATE webhooks
SET secret_version = secret_version + 1,
    previous_until = clock_timestamp() + $4::bigint * interval '1 s',
    key_id = $5,
    changed_at = clock_timestamp()
WHERE tenant = $1 AND id = $2 AND secret_version = $3
RETURNING
    id AS "id!", url AS "url!", events AS "events!", tools AS "tools!", agents AS "agents!", state AS "state!", reason,
    key_id AS "key_id!", secret_version AS "secret_version!", previous_until, created_at AS "created_at!",
    created_by AS "created_by!", changed_at AS "changed_at!", content AS "content!"
