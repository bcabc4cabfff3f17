-- What is known of the retries of these calls, whether they wait for a token or for their time: how many of their
-- tenant are before each (at most 100,001 are counted), and about when it has its turn at the present rate.
SELECT
    c.id AS call, health.failing_since, health.recovering_since, health.per_second,
    before.retries AS "before!",
    GREATEST(
        CASE WHEN c.state = 'retry_wait' THEN c.wake_at ELSE t.now END,
        t.now + GREATEST(
            before.retries + 1 - health.tokens
                - GREATEST(extract(epoch FROM t.now - health.updated_at)::double precision, 0) * health.per_second,
            0) / health.per_second * interval '1 s') AS "until_about!"
FROM calls c
CROSS JOIN (SELECT clock_timestamp() AS now) t
JOIN retry_budgets health ON health.tool = c.tool
CROSS JOIN LATERAL (
    SELECT count(*) AS retries
    FROM (
        SELECT FROM calls o
        WHERE o.tool = c.tool AND o.tenant COLLATE "C" = c.tenant AND o.backlog_retry AND o.backlog_at IS NOT NULL
            AND (c.backlog_at IS NULL OR (o.backlog_at, o.id) < (c.backlog_at, c.id))
        LIMIT 100001
    ) first
) before
WHERE c.id = ANY ($1) AND (c.state = 'retry_wait' OR (c.backlog_at IS NOT NULL AND c.backlog_retry))
