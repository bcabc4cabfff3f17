-- A consumer of the pool whose workers are gone: it may be given to workers with other tools.
SELECT name FROM consumers c
WHERE pool = $1 AND NOT EXISTS (
    SELECT FROM workers w
    WHERE c.name = ANY (w.consumers)
        AND (w.last_seen_at > clock_timestamp() - $2::bigint * interval '1 ms' OR w.live_until > clock_timestamp())
)
ORDER BY length(name), name
LIMIT 1
