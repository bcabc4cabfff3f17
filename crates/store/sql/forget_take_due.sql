-- Takes the erasure that waits longest for its next step, of any tenant: a tenant with many has no more turns than one with one.
-- Whoever takes it has $1 ms for the step.
WITH of_tenants AS (
    SELECT DISTINCT ON (tenant) id FROM tombstones
    WHERE erased_at IS NULL AND next_at <= clock_timestamp()
    ORDER BY tenant, next_at
), due AS MATERIALIZED (
    SELECT t.id FROM of_tenants
    JOIN tombstones t USING (id)
    WHERE t.erased_at IS NULL AND t.next_at <= clock_timestamp()
    ORDER BY random()
    LIMIT 1
    FOR UPDATE OF t SKIP LOCKED
)
UPDATE tombstones t
SET next_at = clock_timestamp() + $1::bigint * interval '1 ms', until_at = COALESCE(until_at, clock_timestamp())
FROM due
WHERE t.id = due.id
RETURNING
    t.id, t.tenant, t.conversation, t.actor, t.cancels, t.begun_at, t.until_at, t.erased_at, t.phase, t.position, t.first_at,
    t.last_at, t.counts::text AS counts
