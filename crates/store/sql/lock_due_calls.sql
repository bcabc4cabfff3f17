-- Locks calls that are due and that no other dispatcher has locked. The clock is read by a subquery, or its condition
-- could not be one of the index, which would be walked to its end.
SELECT
    id, state, attempt, tool, pool, effect, retry::text, timeout_ms, traceparent, deadline_at, worker, claim_id,
    lease_until, cancel_requested, publish_no, published_at, origin_id, clock_timestamp() AS "read_at!"
FROM calls
WHERE wake_at <= (SELECT clock_timestamp())
ORDER BY wake_at
LIMIT $1
FOR UPDATE SKIP LOCKED
