-- Extends the leases of attempts that a worker still holds. Only lease_until changes, which no index holds. `renews` of
-- the engine is the same rule in Rust; a test compares the two.
UPDATE calls c
SET lease_until = clock_timestamp() + $4::bigint * interval '1 ms'
FROM UNNEST($1::uuid[], $2::int[]) AS i (id, attempt)
WHERE c.id = ANY (ARRAY[i.id]) AND c.attempt = i.attempt AND c.state = 'running' AND c.worker = $3
RETURNING c.id, c.attempt, c.cancel_requested
