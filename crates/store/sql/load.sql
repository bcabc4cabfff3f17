-- The part of calls that decisions need.
SELECT
    id, state, attempt, tool, pool, effect, retry::text, timeout_ms, traceparent, deadline_at, worker, claim_id,
    lease_until, NULL::timestamptz AS worker_heard_after, cancel_requested, publish_no, published_at, consumer, backlog_at IS NOT NULL AS "waits!", backlog_retry,
    started_at, origin_id, clock_timestamp() AS "read_at!"
FROM calls
WHERE id = ANY ($1)
