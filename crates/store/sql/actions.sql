-- What users did, newest first.
SELECT
    id, at, tenant, user_name AS "user", role, door, token, verb, targets, target_count, result, changed
FROM actions
WHERE ($1::text IS NULL OR tenant = $1)
    AND ($2::text IS NULL OR user_name = $2)
    AND ($3::text IS NULL OR verb = $3)
    AND ($4::timestamptz IS NULL OR at >= $4)
    AND ($5::bigint IS NULL OR id < $5)
ORDER BY id DESC
LIMIT $6
