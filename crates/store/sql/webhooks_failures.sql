-- The failures of deliveries that ended from $1 on and before $2 with class $4.
SELECT c.tenant AS "tenant!", c.finished_at AS "at!", a.details::text AS "details!"
FROM calls c
JOIN attempts a ON a.call_id = c.id AND a.attempt = c.attempt
WHERE c.finished_at >= $1 AND c.finished_at < $2 AND c.tool = $3 AND c.state = 'failed' AND c.class = $4
    AND a.details IS NOT NULL
