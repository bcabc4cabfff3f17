-- Locks a tombstone.
SELECT
    id, tenant, conversation, actor, cancels, begun_at, until_at, erased_at, phase, position, first_at, last_at,
    counts::text AS counts
FROM tombstones
WHERE id = $1
FOR UPDATE
