-- The registry with what is known of each tool: its live workers, the calls that wait, its health. Only calls that the
-- sweeper checks within $1 ms have a job on the stream.
WITH queued AS (
    SELECT tool, count(*) AS calls
    FROM calls
    WHERE wake_at <= (SELECT clock_timestamp() + $1::bigint * interval '1 ms') AND state = 'ready' AND num_nonnulls(backlog_at) = 0
    GROUP BY tool
)
SELECT
    t.name, t.spec::text AS "spec!", t.registered_by, t.registered_at, w.live AS "workers!",
    GREATEST(w.last_seen_at, t.last_served_at) AS last_seen_at,
    b.waiting + COALESCE(q.calls, 0) AS "waiting!", b.retries AS "waiting_retries!",
    h.failing_since AS "failing_since?", h.recovering_since AS "recovering_since?", h.per_second AS "per_second?"
FROM tools t
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE NOT draining AND live_until > clock_timestamp()) AS live,
        max(last_seen_at) AS last_seen_at
    FROM workers WHERE t.name = ANY (tools)
) w
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting, count(*) FILTER (WHERE backlog_retry) AS retries
    FROM calls WHERE tool = t.name AND backlog_at IS NOT NULL
) b
LEFT JOIN queued q ON q.tool = t.name
LEFT JOIN retry_budgets h ON h.tool = t.name
ORDER BY t.name
