-- Redrives of a tenant, newest first: one, or those before another.
SELECT
    id, filter::text AS "filter!", dry_run, rate, state, matched, redriven, existing, refused, error, created_by,
    created_at, finished_at, at_most
FROM redrives
WHERE tenant = $1
    AND ($2::uuid IS NULL OR id = $2)
    AND ($3::timestamptz IS NULL OR (created_at, id) < ($3, $4::uuid))
    AND ($5::text IS NULL OR state = $5)
ORDER BY created_at DESC, id DESC
LIMIT $6
