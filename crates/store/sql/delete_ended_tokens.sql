-- Deletes up to $2 of the tokens that ended before $1.
DELETE FROM tokens
WHERE id = ANY (ARRAY(
    SELECT id FROM tokens
    WHERE LEAST(expires_at, revoked_at) IS NOT NULL AND LEAST(expires_at, revoked_at) < $1
    ORDER BY LEAST(expires_at, revoked_at)
    LIMIT $2
    FOR UPDATE SKIP LOCKED))
