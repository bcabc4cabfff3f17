-- The state of a worker, as its heartbeat reports it. One that waits for a tool of which no change is pending any more registers again.
-- One that has drained says so with no slots, and is not live any more, also if a heartbeat of before arrives later.
UPDATE workers
SET slots = CASE WHEN draining AND slots = 0 THEN 0 ELSE $2 END,
    running = CASE WHEN draining AND slots = 0 THEN 0 ELSE $3 END,
    draining = draining OR $4,
    last_seen_at = clock_timestamp(),
    live_until = CASE
        WHEN draining AND slots = 0 THEN live_until
        WHEN $4 AND $2 = 0 THEN clock_timestamp()
        ELSE clock_timestamp() + $5::bigint * interval '1 ms' END
WHERE id = $1
RETURNING NOT EXISTS (
    SELECT FROM UNNEST(waiting) AS w (tool)
    WHERE NOT EXISTS (SELECT FROM pending_tools p WHERE p.tool = w.tool AND p.identity = $6)
) AS "is_current!", clock_timestamp() AS "at!"
