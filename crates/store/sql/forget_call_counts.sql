-- What belongs to these calls.
SELECT
    count(*) AS "calls!",
    count(*) FILTER (WHERE c.call_index = 0) AS "model_turns!",
    count(c.key) FILTER (WHERE c.state <> 'refused') AS "keys!",
    count(*) FILTER (WHERE c.wake_at IS NOT NULL) AS "open!",
    COALESCE(sum((SELECT count(*) FROM attempts a WHERE a.call_id = c.id)), 0)::bigint AS "attempts!",
    COALESCE(sum((SELECT count(*) FROM late_reports l WHERE l.call_id = c.id)), 0)::bigint AS "late_reports!"
FROM calls c
WHERE c.id = ANY ($1)
