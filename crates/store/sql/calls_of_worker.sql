-- The newest calls of which a worker ran an attempt, or runs one. No running attempt is checked later than a lease takes,
-- an hour at most; no call in the backlog runs.
SELECT call AS "call!"
FROM (
    (SELECT DISTINCT a.call_id AS call
    FROM attempts a
    WHERE a.worker = $1
        AND ($2::uuid IS NULL OR a.call_id < $2)
        AND ($3::uuid IS NULL OR a.call_id >= $3)
        AND ($4::uuid IS NULL OR a.call_id < $4)
    ORDER BY a.call_id DESC
    LIMIT $5)
    UNION
    SELECT c.id
    FROM calls c
    WHERE num_nonnulls(c.backlog_at) = 0 AND c.wake_at <= (SELECT clock_timestamp() + interval '70 minutes')
        AND c.state = 'running' AND c.worker = $1
        AND ($2::uuid IS NULL OR c.id < $2)
        AND ($3::uuid IS NULL OR c.id >= $3)
        AND ($4::uuid IS NULL OR c.id < $4)
) calls_of_worker
ORDER BY call DESC
LIMIT $5
