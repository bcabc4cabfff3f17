-- The newest erasures of a tenant or of all, unfinished ones first; or the one with an id.
SELECT
    id, tenant, conversation, actor, cancels, begun_at, until_at, erased_at, phase, position, first_at, last_at,
    counts::text AS counts
FROM tombstones
WHERE ($1::text IS NULL OR tenant = $1) AND ($2::uuid IS NULL OR id = $2)
ORDER BY COALESCE(erased_at, 'infinity') DESC, begun_at DESC
LIMIT $3
