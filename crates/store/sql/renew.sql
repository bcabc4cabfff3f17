-- Extends the leases of attempts that a worker still holds. Only lease_until changes, which no index holds. `renews` of
-- the engine is the same rule in Rust; a test compares the two. What the heartbeat proves of the attempts that it does not name ($5) is
-- on record together with the renewal of those that it names: a sweep that sees the one sees the other. A time that has not come
-- yet proves nothing: the clock was set back.
WITH renewed AS (
    UPDATE calls c
    SET lease_until = clock_timestamp() + $4::bigint * interval '1 ms'
    FROM UNNEST((SELECT $1::uuid[]), $2::int[]) AS i (id, attempt)
    WHERE c.id = ANY (ARRAY[i.id]) AND c.attempt = i.attempt AND c.state = 'running' AND c.worker = $3
    RETURNING c.id, c.attempt, c.cancel_requested
), heard AS (
    UPDATE workers SET heard_after = CASE WHEN $5 <= clock_timestamp() THEN $5 END
    WHERE id = $3 AND $5::timestamptz IS NOT NULL
)
SELECT id AS "id!", attempt AS "attempt!", cancel_requested AS "cancel_requested!" FROM renewed
