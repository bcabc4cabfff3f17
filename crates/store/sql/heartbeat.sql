-- The state of a worker, as its heartbeat reports it.
UPDATE workers
SET slots = $2, running = $3, draining = $4, last_seen_at = clock_timestamp()
WHERE id = $1
