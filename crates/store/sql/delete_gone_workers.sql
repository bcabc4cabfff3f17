-- Deletes up to $2 workers, of identity $3 unless it is null, that were not seen since $1, and are not live: a lease may be longer than
-- a retention. Their tools remember when they were last served.
WITH gone AS (
    DELETE FROM workers
    WHERE id = ANY (ARRAY(
        SELECT id FROM workers
        WHERE last_seen_at < $1 AND live_until <= clock_timestamp()
            AND ($3::text IS NULL OR regexp_replace(id, '-[^-]*$', '') = $3)
        LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING tools, last_seen_at
), remembered AS (
    UPDATE tools t
    SET last_served_at = GREATEST(t.last_served_at, seen.at)
    FROM (SELECT name, max(last_seen_at) AS at FROM gone CROSS JOIN UNNEST(gone.tools) AS g (name) GROUP BY name) seen
    WHERE t.name = seen.name
)
SELECT count(*) AS "deleted!" FROM gone
