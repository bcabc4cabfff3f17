-- Grants attempts: no other statement allows an execution. The comparison with the state and the number makes a
-- redelivered, doubled or late job harmless. The same claim sent again is granted again, with a fresh lease; but after `not_after`
-- nothing is granted for the first time, because its worker no longer waits for that (but for a statement that waits for the lock of a
-- row, for 4 s at most). And a claim that was released is not granted again, should a late copy of it arrive: no worker would run that
-- attempt. Nor is a call granted whose effect this version does not know, or of another tool
-- than the claim names: only the tools that its worker may serve get here. IS TRUE keeps the planner from looking calls up by their
-- tool. `grants` of the engine is the same rule in Rust; a test compares the two.
UPDATE calls c
SET state = 'running',
    attempt = i.attempt,
    claim_id = i.claim_id,
    worker = i.worker,
    started_at = CASE WHEN c.state = 'ready' THEN t.now ELSE c.started_at END,
    lease_until = t.now + $5::bigint * interval '1 ms',
    wake_at = LEAST(c.wake_at, t.now + $5::bigint * interval '1 ms'),
    -- An old job of a call that waits in the backlog is as good as any.
    backlog_at = NULL
FROM UNNEST((SELECT $1::uuid[]), $2::int[], $3::uuid[], $4::text[], $6::text[], $8::timestamptz[])
        AS i (id, attempt, claim_id, worker, tool, not_after),
    (SELECT clock_timestamp() AS now) t
WHERE c.id = ANY (ARRAY[i.id])
    AND (c.tool = i.tool) IS TRUE
    AND c.effect IN ('read', 'idempotent', 'keyed', 'unsafe')
    AND ((c.state = 'ready' AND c.attempt = i.attempt - 1 AND c.deadline_at > t.now AND i.not_after >= t.now
            AND c.claim_id IS DISTINCT FROM i.claim_id)
        OR (c.state = 'running' AND c.attempt = i.attempt AND c.claim_id = i.claim_id AND c.worker = i.worker))
RETURNING
    c.id, c.attempt, c.claim_id AS "claim_id!", c.tool, -- Large arguments are read one by one.
    CASE WHEN octet_length(c.arguments::text) <= $7 THEN c.arguments::text END AS arguments, c.effect, c.tenant, c.conversation,
    c.traceparent, c.task_id,
    COALESCE(c.origin_id, c.id) AS "origin_id!",
    LEAST(c.timeout_ms, GREATEST(1, (extract(epoch FROM (c.deadline_at - t.now)) * 1000)::bigint)) AS "timeout_ms!",
    -- A retry is ready from its time on.
    (extract(epoch FROM t.now - COALESCE(
        CASE WHEN i.attempt > 1 THEN
            (SELECT b.retry_at FROM attempts b WHERE b.call_id = c.id AND b.attempt = i.attempt - 1) END,
        c.submitted_at)) * 1000)::bigint AS "ready_ms!",
    -- It may be an old job of a call that was published again.
    CASE WHEN c.publish_no = c.attempt THEN c.consumer END AS consumer, c.published_at, c.tool_version
