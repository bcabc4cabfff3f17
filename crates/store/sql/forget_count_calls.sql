-- Counts the calls of a scope, and what belongs to them, up to $3 of each.
WITH of AS MATERIALIZED (
    SELECT id, key, state, call_index, wake_at FROM calls
    WHERE tenant = $1 AND ($2::text IS NULL OR conversation = $2) LIMIT $3
)
SELECT
    count(*) AS "calls!", count(*) FILTER (WHERE call_index = 0) AS "model_turns!",
    count(key) FILTER (WHERE state <> 'refused') AS "keys!", count(*) FILTER (WHERE wake_at IS NOT NULL) AS "open!",
    (SELECT count(*) FROM (SELECT FROM of JOIN attempts a ON a.call_id = of.id LIMIT $3) a) AS "attempts!",
    (SELECT count(*) FROM (SELECT FROM of JOIN late_reports l ON l.call_id = of.id LIMIT $3) l) AS "late_reports!"
FROM of
