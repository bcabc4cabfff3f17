-- Revokes a token, within tenant $2 if it is given, and unless only that one is meant ($4) those that were created with it, or with one
-- of those, and are valid. Locked in order: another revocation may mean some of them.
WITH RECURSIVE found AS (
    SELECT id FROM tokens WHERE id = $1 AND ($2::text IS NULL OR tenant = $2)
    UNION
    SELECT t.id FROM found f JOIN tokens t ON t.parent = f.id WHERE NOT $4
), locked AS MATERIALIZED (
    SELECT id FROM tokens
    WHERE id = ANY (ARRAY(SELECT id FROM found)) AND revoked_at IS NULL
        AND (id = $1 OR expires_at IS NULL OR expires_at > clock_timestamp())
    ORDER BY id
    FOR UPDATE
)
UPDATE tokens SET revoked_at = clock_timestamp(), revoked_by = $3
WHERE id = ANY (ARRAY(SELECT id FROM locked))
