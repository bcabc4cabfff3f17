-- Extends the leases of grants that a worker still holds, as far as their calls are not locked: nobody waits here, or one locked row
-- would end the leases of all others that the heartbeat names. Only lease_until changes, which no index holds. `renews` of the engine
-- is the same rule in Rust; a test compares the two.
WITH free AS MATERIALIZED (
    SELECT c.id
    FROM UNNEST((SELECT $1::uuid[]), $2::int[], $3::uuid[]) AS i (id, attempt, claim_id), calls c
    WHERE c.id = ANY (ARRAY[i.id])
        AND c.state = 'running' AND c.attempt = i.attempt AND c.claim_id = i.claim_id AND c.worker = $4
    FOR NO KEY UPDATE OF c SKIP LOCKED
)
UPDATE calls c
SET lease_until = clock_timestamp() + $5::bigint * interval '1 ms'
FROM free
WHERE c.id = ANY (ARRAY[free.id])
RETURNING c.id AS "id!", c.attempt AS "attempt!", c.claim_id AS "claim_id!", c.cancel_requested AS "cancel_requested!"
