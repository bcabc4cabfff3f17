-- Deletes the workers of a consumer, which have not been seen for long. Their tools remember when they were last served.
WITH gone AS (
    DELETE FROM workers WHERE $1 = ANY (consumers) RETURNING tools, last_seen_at
)
UPDATE tools t
SET last_served_at = GREATEST(t.last_served_at, seen.at)
FROM (SELECT name, max(last_seen_at) AS at FROM gone CROSS JOIN UNNEST(gone.tools) AS g (name) GROUP BY name) seen
WHERE t.name = seen.name
