-- A worker, with the names of the tools that it serves and of those that wait, and of its consumers. If it has drained, this
-- registration is one of before (see heartbeat.sql).
INSERT INTO workers (id, version, tools, started_at, slots, consumers, live_until, waiting, host, pool_slots)
VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7::bigint * interval '1 ms', $8, $9, $10)
ON CONFLICT (id) DO UPDATE
SET tools = EXCLUDED.tools,
    slots = CASE WHEN workers.draining AND workers.slots = 0 THEN 0 ELSE EXCLUDED.slots END,
    consumers = EXCLUDED.consumers,
    pool_slots = EXCLUDED.pool_slots,
    waiting = EXCLUDED.waiting,
    host = EXCLUDED.host,
    last_seen_at = clock_timestamp(),
    live_until = CASE WHEN workers.draining AND workers.slots = 0 THEN workers.live_until ELSE EXCLUDED.live_until END
