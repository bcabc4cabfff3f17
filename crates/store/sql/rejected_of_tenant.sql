-- Rejected submissions of a tenant, newest first, each with the beginning of its message.
SELECT
    id AS "id!", received_at AS "received_at!", code AS "code!", message AS "message!",
    error_count AS "error_count!", errors::text AS "errors!", octet_length(payload) AS "bytes!",
    substr(payload, 1, $5) AS "payload!"
FROM dead_letters
WHERE source = 'intake' AND COALESCE(identity, tenant, '') = $1 AND tenant = $1
    AND ($2::bigint IS NULL OR id < $2)
    AND ($3::bigint IS NULL OR id = $3)
ORDER BY id DESC
LIMIT $4
