-- The next dead letters behind $1 that arrived at $2 or later, as many as have about 8 MiB together, and one at least.
SELECT id AS "id!", source AS "source!", tenant, payload AS "payload!"
FROM (
    SELECT id, source, tenant, payload, sum(octet_length(payload)) OVER (ORDER BY id) - octet_length(payload) AS before
    FROM (
        SELECT id, source, tenant, payload FROM dead_letters
        WHERE id > $1 AND ($2::timestamptz IS NULL OR received_at >= $2)
        ORDER BY id LIMIT 500
    ) next
) summed
WHERE before < 8 * 1024 * 1024
ORDER BY id
