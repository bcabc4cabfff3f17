-- Of calls $1, which have ended: deletes the events that they delivered. The answer is the failures of class $3 among the deliveries.
WITH ended AS MATERIALIZED (
    SELECT c.id, c.tenant, c.state, c.class, c.attempt, c.finished_at
    FROM UNNEST($1::uuid[]) AS i (id)
    JOIN calls c ON c.id = ANY (ARRAY[i.id])
    WHERE c.tool = $2
), over AS (
    DELETE FROM webhook_events e USING ended c WHERE e.delivery = c.id
)
SELECT c.tenant AS "tenant!", c.finished_at AS "at!", a.details::text AS "details!"
FROM ended c
JOIN attempts a ON a.call_id = c.id AND a.attempt = c.attempt
WHERE c.state = 'failed' AND c.class = $3 AND a.details IS NOT NULL
