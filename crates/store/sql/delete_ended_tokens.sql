-- Deletes up to $2 of the tokens that ended before $1. One that others were created with stays until those are gone.
DELETE FROM tokens
WHERE id = ANY (ARRAY(
    SELECT id FROM tokens t
    WHERE LEAST(expires_at, revoked_at) IS NOT NULL AND LEAST(expires_at, revoked_at) < $1
        AND NOT EXISTS (SELECT FROM tokens c WHERE c.parent = t.id)
    ORDER BY LEAST(expires_at, revoked_at)
    LIMIT $2
    FOR UPDATE SKIP LOCKED))
