-- Tokens, newest first, without their hashes.
SELECT
    id, tenant, user_name AS "user", roles, label, created_at, created_by, parent, expires_at, revoked_at, revoked_by,
    last_used_at,
    CASE
        WHEN revoked_at IS NOT NULL THEN 'revoked'
        WHEN expires_at <= clock_timestamp() THEN 'expired'
        ELSE 'valid'
    END AS "state!"
FROM tokens
WHERE ($1::text IS NULL OR tenant = $1)
    AND ($2::text IS NULL OR user_name = $2)
    AND (NOT $3 OR (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())))
    AND ($4::text IS NULL OR (created_at, id) < (SELECT b.created_at, b.id FROM tokens b
                                                 WHERE b.id = $4 AND ($1::text IS NULL OR b.tenant = $1)))
ORDER BY created_at DESC, id DESC
LIMIT $5
