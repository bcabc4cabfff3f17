-- A worker, with the names of the tools that it serves and of those that wait, and of its consumers.
INSERT INTO workers (id, version, tools, started_at, slots, consumers, live_until, waiting, host, takes_packs)
VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7::bigint * interval '1 ms', $8, $9, $10)
ON CONFLICT (id) DO UPDATE
SET tools = EXCLUDED.tools,
    slots = EXCLUDED.slots,
    consumers = EXCLUDED.consumers,
    waiting = EXCLUDED.waiting,
    host = EXCLUDED.host,
    takes_packs = EXCLUDED.takes_packs,
    last_seen_at = clock_timestamp(),
    live_until = EXCLUDED.live_until
