-- How far the next $7 tasks along each of these indexes reach back: the id of the last of them. NULL: the index has fewer, or was
-- not asked for.
SELECT
    CASE WHEN $1::text IS NOT NULL THEN (
        SELECT t.id FROM tasks t
        WHERE t.state = $1 AND t.state IN ('failed', 'cancelled') AND ($4::uuid IS NULL OR t.id < $4)
            AND ($5::uuid IS NULL OR t.id >= $5) AND ($6::uuid IS NULL OR t.id < $6)
        ORDER BY t.id DESC OFFSET $7 LIMIT 1) END AS ended_as,
    CASE WHEN $2::text IS NOT NULL THEN (
        SELECT t.id FROM tasks t
        WHERE t.agent = $2 AND ($4::uuid IS NULL OR t.id < $4) AND ($5::uuid IS NULL OR t.id >= $5)
            AND ($6::uuid IS NULL OR t.id < $6)
        ORDER BY t.id DESC OFFSET $7 LIMIT 1) END AS agent,
    (SELECT t.id FROM tasks t
        WHERE t.tenant = $3 AND ($4::uuid IS NULL OR t.id < $4) AND ($5::uuid IS NULL OR t.id >= $5)
            AND ($6::uuid IS NULL OR t.id < $6)
        ORDER BY t.id DESC OFFSET $7 LIMIT 1) AS tenant
