-- When a worker that has the tool was last seen, for each tool of which that is known.
SELECT name AS "name!", max(seen_at) AS "seen_at!"
FROM (
    SELECT name, last_served_at AS seen_at FROM tools WHERE last_served_at IS NOT NULL
    UNION ALL
    SELECT t.name, w.last_seen_at FROM workers w CROSS JOIN UNNEST(w.tools) AS t (name)
) seen
GROUP BY name
