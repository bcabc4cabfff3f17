-- How far the next $9 calls along each of these indexes reach back: the id of the last of them. NULL: the index has fewer, or was
-- not asked for. Only entries of indexes are read.
SELECT
    CASE WHEN $1::text IS NOT NULL THEN (
        SELECT c.id FROM calls c
        WHERE c.conversation = $1 AND ($6::uuid IS NULL OR c.id < $6) AND ($7::uuid IS NULL OR c.id >= $7)
            AND ($8::uuid IS NULL OR c.id < $8)
        ORDER BY c.id DESC OFFSET $9 LIMIT 1) END AS conversation,
    CASE WHEN $2::text IS NOT NULL THEN (
        SELECT c.id FROM calls c
        WHERE c.class = $2 AND ($6::uuid IS NULL OR c.id < $6) AND ($7::uuid IS NULL OR c.id >= $7)
            AND ($8::uuid IS NULL OR c.id < $8)
        ORDER BY c.id DESC OFFSET $9 LIMIT 1) END AS class,
    CASE WHEN $3::text IS NOT NULL THEN (
        SELECT c.id FROM calls c
        WHERE c.ended_as = $3 AND ($6::uuid IS NULL OR c.id < $6) AND ($7::uuid IS NULL OR c.id >= $7)
            AND ($8::uuid IS NULL OR c.id < $8)
        ORDER BY c.id DESC OFFSET $9 LIMIT 1) END AS ended_as,
    CASE WHEN $4::text IS NOT NULL THEN (
        SELECT c.id FROM calls c
        WHERE c.tenant = $4 AND ($6::uuid IS NULL OR c.id < $6) AND ($7::uuid IS NULL OR c.id >= $7)
            AND ($8::uuid IS NULL OR c.id < $8)
        ORDER BY c.id DESC OFFSET $9 LIMIT 1) END AS tenant,
    CASE WHEN $5::text IS NOT NULL THEN (
        SELECT c.id FROM calls c
        WHERE c.tool = $5 AND ($6::uuid IS NULL OR c.id < $6) AND ($7::uuid IS NULL OR c.id >= $7)
            AND ($8::uuid IS NULL OR c.id < $8)
        ORDER BY c.id DESC OFFSET $9 LIMIT 1) END AS tool
