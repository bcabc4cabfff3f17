-- The state of a worker, as its heartbeat reports it. One that registered at a dispatcher of an older version has no
-- consumers: it counts as unknown, and registers again.
UPDATE workers
SET slots = $2,
    running = $3,
    draining = $4,
    last_seen_at = clock_timestamp(),
    live_until = clock_timestamp() + $5::bigint * interval '1 ms'
WHERE id = $1 AND (consumers <> '{}' OR tools = '{}')
