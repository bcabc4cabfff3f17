-- A worker, with the names of its tools.
INSERT INTO workers (id, version, tools, started_at, slots)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE
SET tools = EXCLUDED.tools, slots = EXCLUDED.slots, last_seen_at = clock_timestamp()
