-- What waits and runs of each tool, of the tenant $1 or of all. At most $2 open calls are counted: with more of them the numbers are
-- lower bounds, and the oldest may be older. States of calls in the backlog are `ready`.
WITH open AS MATERIALIZED (
    SELECT tool, pool, state, submitted_at, backlog_at, tenant
    FROM calls
    WHERE wake_at IS NOT NULL AND ($1::text IS NULL OR tenant = $1)
    LIMIT $2)
SELECT
    o.tool AS "tool!", min(o.pool) AS "pool!",
    count(*) FILTER (WHERE o.state = 'ready') AS "ready!",
    count(*) FILTER (WHERE o.state = 'ready' AND o.backlog_at IS NOT NULL) AS "backlog!",
    count(*) FILTER (WHERE o.state = 'running') AS "running!",
    count(*) FILTER (WHERE o.state = 'retry_wait') AS "retry_wait!",
    count(*) FILTER (WHERE o.state = 'client_wait') AS "client_wait!",
    min(o.submitted_at) FILTER (WHERE o.state = 'ready') AS oldest_ready_at,
    sum(count(*)) OVER ()::bigint AS "all!",
    (SELECT count(*) FROM workers w WHERE w.live_until > clock_timestamp() AND o.tool = ANY (w.tools)) AS "workers!",
    (SELECT COALESCE(sum(w.slots), 0) FROM workers w
    WHERE w.live_until > clock_timestamp() AND NOT w.draining AND o.tool = ANY (w.tools)) AS "slots!"
FROM open o
GROUP BY o.tool
ORDER BY count(*) FILTER (WHERE o.state = 'ready') DESC, o.tool
