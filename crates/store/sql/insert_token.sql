-- Creates a token, unless its id is taken or its tenant has $9 tokens on record.
INSERT INTO tokens (id, tenant, user_name, roles, sha256, label, created_by, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7, now.at, now.at + $8::bigint * interval '1 second'
FROM (SELECT clock_timestamp() AS at) now
WHERE (SELECT count(*) FROM (SELECT FROM tokens WHERE tenant = $2 LIMIT $9) found) < $9
ON CONFLICT (id) DO NOTHING
