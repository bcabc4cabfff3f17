-- Attempts of calls that have ended.
SELECT
    a.call_id AS "call!", a.attempt AS "attempt!", a.worker AS "worker!", a.started_at AS "started_at!", a.ended_at, a.duration_ms,
    CASE WHEN a.class IS NULL THEN 'succeeded' ELSE 'failed' END AS "outcome!", a.class, a.message, a.retry_at,
    NULL::timestamptz AS unheard_since, a.details::text AS details, a.output::text AS output
FROM UNNEST((SELECT $1::uuid[])) AS i (id)
JOIN attempts a ON a.call_id = ANY (ARRAY[i.id])
ORDER BY a.attempt
