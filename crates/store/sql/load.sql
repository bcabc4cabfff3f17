-- The part of calls that decisions need.
SELECT
    c.id, c.state, c.attempt, c.tool, c.pool, c.effect, c.retry::text, c.timeout_ms, c.traceparent, c.deadline_at, c.worker, c.claim_id,
    c.lease_until, c.cancel_requested, c.publish_no, c.published_at, c.consumer,
    c.backlog_at IS NOT NULL AS "waits!", c.backlog_retry, c.started_at, c.origin_id, clock_timestamp() AS "read_at!"
FROM UNNEST((SELECT $1::uuid[])) AS i (id)
JOIN calls c ON c.id = ANY (ARRAY[i.id])
