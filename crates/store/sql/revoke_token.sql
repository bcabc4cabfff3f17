-- Revokes a token, within tenant $2 if it is given. The first one who does so stays on record.
WITH found AS (
    SELECT id, revoked_at FROM tokens WHERE id = $1 AND ($2::text IS NULL OR tenant = $2) FOR UPDATE
), revoked AS (
    UPDATE tokens SET revoked_at = clock_timestamp(), revoked_by = $3
    WHERE id = ANY (ARRAY(SELECT id FROM found WHERE revoked_at IS NULL))
    RETURNING revoked_at
)
SELECT COALESCE(f.revoked_at, r.revoked_at) AS "revoked_at!", f.revoked_at IS NULL AS "changed!"
FROM found f LEFT JOIN revoked r ON true
