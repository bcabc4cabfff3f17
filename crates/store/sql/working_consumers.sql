-- The consumers with workers that are not draining and were seen within $1 ms, with the slots of the live ones (or of all, if
-- none is live), how many these are, and whether one is live: it sent a heartbeat within the lease. The limit makes Postgres look
-- each consumer up by its name (measured with 20,000 consumers of four workers: 0.3 s instead of minutes).
SELECT
    c.name AS "name!", c.pool AS "pool!", c.tools AS "tools!",
    COALESCE(sum(w.slots) FILTER (WHERE w.live_until > clock_timestamp()), sum(w.slots)) AS "slots!",
    COALESCE(NULLIF(count(*) FILTER (WHERE w.live_until > clock_timestamp()), 0), count(*)) AS "workers!",
    bool_or(w.live_until > clock_timestamp()) AS "is_live!"
FROM (
    SELECT UNNEST(consumers) AS consumer, UNNEST(pool_slots) AS slots, live_until
    FROM workers
    WHERE NOT draining AND last_seen_at > clock_timestamp() - $1::bigint * interval '1 ms'
) w
CROSS JOIN LATERAL (SELECT * FROM consumers WHERE name = w.consumer LIMIT 1) c
GROUP BY c.name, c.pool, c.tools
