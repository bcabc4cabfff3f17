-- Creates a token, unless its id is taken, its tenant has $9 tokens on record, or the token $10 that asks for it has ended. That one is
-- locked, so that whoever revokes it meanwhile waits for this one, and finds it. It ends at $11 at the latest.
WITH parent AS MATERIALIZED (
    SELECT id FROM tokens
    WHERE id = $10 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
    FOR SHARE
)
INSERT INTO tokens (id, tenant, user_name, roles, sha256, label, created_by, parent, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $10, now.at, LEAST(now.at + $8::bigint * interval '1 second', $11::timestamptz)
FROM (SELECT clock_timestamp() AS at) now
WHERE (SELECT count(*) FROM (SELECT FROM tokens WHERE tenant = $2 LIMIT $9) found) < $9
    AND ($10::text IS NULL OR EXISTS (SELECT FROM parent))
ON CONFLICT (id) DO NOTHING
