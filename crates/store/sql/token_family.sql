-- A token, within tenant $2 if it is given, and those that were created with it, or with one of those: the oldest first.
WITH RECURSIVE found AS (
    SELECT id FROM tokens WHERE id = $1 AND ($2::text IS NULL OR tenant = $2)
    UNION
    SELECT t.id FROM found f JOIN tokens t ON t.parent = f.id
)
SELECT
    id, revoked_at,
    CASE
        WHEN revoked_at IS NOT NULL THEN 'revoked'
        WHEN expires_at <= clock_timestamp() THEN 'expired'
        ELSE 'valid'
    END AS "state!"
FROM tokens
WHERE id = ANY (ARRAY(SELECT id FROM found))
ORDER BY created_at, id
