-- Whose calls wait for these tools, between two tenants that are known to wait: each step looks up the next tenant, so that
-- a million calls of one cost as much as one. At most $5 of each gap; the others are found the next time. What began to wait before $6
-- is not looked for: entries below it that are dead are passed in the index, and their rows are not read.
WITH RECURSIVE found AS (
    SELECT i.tool, i.retry, i.after AS tenant, i.before, i.since, NULL::timestamptz AS backlog_at, 0 AS step
    FROM UNNEST($1::text[], $2::boolean[], $3::text[], $4::text[], $6::timestamptz[]) AS i (tool, retry, after, before, since)
    UNION ALL
    SELECT f.tool, f.retry, c.tenant, f.before, f.since, c.backlog_at, f.step + 1
    FROM found f
    CROSS JOIN LATERAL (
        SELECT tenant, backlog_at FROM calls
        WHERE tool = f.tool AND backlog_retry = f.retry AND backlog_at >= COALESCE(f.since, '-infinity') AND state = 'ready'
            AND tenant COLLATE "C" > f.tenant AND tenant COLLATE "C" < f.before
        ORDER BY tenant COLLATE "C", backlog_at
        LIMIT 1 OFFSET 0
    ) c
    WHERE f.step < $5
)
SELECT tool AS "tool!", retry AS "retry!", tenant AS "tenant!", backlog_at AS "since!" FROM found WHERE step > 0
