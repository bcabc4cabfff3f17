-- Whose calls wait for these tools, between two tenants that are known to wait: each step looks up the next tenant, so that
-- a million calls of one cost as much as one. At most $5 of each gap; the others are found the next time.
WITH RECURSIVE found AS (
    SELECT i.tool, i.retry, i.after AS tenant, i.before, 0 AS step
    FROM UNNEST($1::text[], $2::boolean[], $3::text[], $4::text[]) AS i (tool, retry, after, before)
    UNION ALL
    SELECT f.tool, f.retry, c.tenant, f.before, f.step + 1
    FROM found f
    CROSS JOIN LATERAL (
        SELECT tenant FROM calls
        WHERE tool = f.tool AND backlog_retry = f.retry AND backlog_at IS NOT NULL AND state = 'ready'
            AND tenant COLLATE "C" > f.tenant AND tenant COLLATE "C" < f.before
        ORDER BY tenant COLLATE "C"
        LIMIT 1 OFFSET 0
    ) c
    WHERE f.step < $5
)
SELECT tool AS "tool!", retry AS "retry!", tenant AS "tenant!" FROM found WHERE step > 0
