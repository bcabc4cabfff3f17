-- Locks calls that are due and that no other dispatcher has locked: up to $1 of those that wait in the backlog, which are due
-- at their deadline only, perhaps a million at once, and up to $1 of all others, so that neither wait for the other. $3 and $2 are
-- where nothing lower was left: what is dead below is not walked over. Calls that were found locked, $4, may lie below. The clock
-- is read by subqueries, or their conditions could not be those of the index, which would be walked to its end.
WITH due AS (
    SELECT * FROM calls
    WHERE num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($2::timestamptz, '-infinity') AND wake_at <= (SELECT clock_timestamp())
        AND id <> ALL ($4::uuid[])
    ORDER BY wake_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), late AS (
    SELECT * FROM calls
    WHERE num_nonnulls(backlog_at) = 1 AND wake_at >= COALESCE($3::timestamptz, '-infinity') AND wake_at <= (SELECT clock_timestamp())
        AND id <> ALL ($4::uuid[])
    ORDER BY wake_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), met AS (
    SELECT * FROM calls
    WHERE id = ANY ($4) AND wake_at <= (SELECT clock_timestamp())
    FOR UPDATE SKIP LOCKED
)
SELECT
    id AS "id!", state AS "state!", attempt AS "attempt!", tool AS "tool!", pool AS "pool!", effect AS "effect!",
    retry::text, timeout_ms AS "timeout_ms!", traceparent, deadline_at AS "deadline_at!", worker, claim_id, lease_until,
    cancel_requested AS "cancel_requested!", publish_no AS "publish_no!", published_at, consumer,
    backlog_at IS NOT NULL AS "waits!", backlog_retry AS "backlog_retry!", started_at, origin_id,
    clock_timestamp() AS "read_at!"
FROM (SELECT * FROM due UNION ALL SELECT * FROM late UNION ALL SELECT * FROM met) locked
