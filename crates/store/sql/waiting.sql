-- Which of these parts of the backlog hold something from a position on, and where. OFFSET 0 makes each lookup one through its index.
SELECT i.n AS "n!", c.backlog_at AS "since!"
FROM UNNEST($1::text[], $2::boolean[], $3::text[], $4::timestamptz[])
    WITH ORDINALITY AS i (tool, retry, tenant, since, n)
CROSS JOIN LATERAL (
    SELECT backlog_at FROM calls
    WHERE tool = i.tool AND backlog_retry = i.retry AND tenant COLLATE "C" = i.tenant AND backlog_at >= COALESCE(i.since, '-infinity')
        AND state = 'ready'
    ORDER BY backlog_at
    LIMIT 1 OFFSET 0
) c
