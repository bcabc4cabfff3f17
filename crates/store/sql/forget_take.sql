-- Takes the tombstone with this id, or the unfinished one, of this scope, and sets its boundary: what is submitted from now on is
-- not erased, because whoever reads the tables after this moment finds the tombstone. Its next step is due. If it is this request that makes it cancel
-- what is open, that is an action of its own.
WITH found AS MATERIALIZED (
    SELECT t.id, NOT t.cancels AND $4 AND t.erased_at IS NULL AS begins_to_cancel
    FROM tombstones t
    WHERE t.id = (
        SELECT f.id FROM (
            SELECT id, 1 AS n FROM tombstones
            WHERE id = $1 AND tenant = $2 AND conversation IS NOT DISTINCT FROM $3
            UNION ALL
            SELECT id, 2 FROM tombstones
            WHERE tenant = $2 AND COALESCE(conversation, '') = COALESCE($3, '') AND (conversation IS NULL) = ($3::text IS NULL)
                AND erased_at IS NULL
        ) f
        ORDER BY f.n
        LIMIT 1)
    FOR UPDATE
), acted AS (
    INSERT INTO actions (tenant, user_name, role, door, token, verb, targets, target_count, erasure)
    SELECT
        $2, $5, $6, $7, (SELECT id FROM tokens k WHERE k.id = $9 AND k.tenant = $2 AND k.user_name = $5), $8,
        ARRAY[COALESCE($3, $2)], 1, id
    FROM found WHERE begins_to_cancel
)
UPDATE tombstones t
SET until_at = COALESCE(t.until_at, clock_timestamp()), cancels = t.cancels OR f.begins_to_cancel,
    next_at = LEAST(t.next_at, clock_timestamp())
FROM found f
WHERE t.id = f.id
RETURNING
    t.id, t.tenant, t.conversation, t.actor, t.cancels, t.begun_at, t.until_at, t.erased_at, t.phase, t.position, t.first_at,
    t.last_at, t.counts::text AS counts
