-- Changes calls and writes the attempts that this ends, in one statement. A call that no longer matches its guard
-- stays unchanged and is not in the answer. A call that waits takes its position in the backlog by its submission, or, as
-- a retry, behind the retries that wait. The task of a call that ends or will be retried gets an item in its inbox. The answer
-- of a client is an attempt that began with the call and that no worker ran. A call that ends is put into the queue of the statistics,
-- and into that of webhooks if its tenant has an active one.
WITH changed AS (
    UPDATE calls c
    SET state = i.state,
        attempt = i.attempt,
        wake_at = CASE WHEN i.ends THEN NULL ELSE COALESCE(i.wake_at, c.wake_at) END,
        deadline_at = COALESCE(i.deadline_at, c.deadline_at),
        backlog_at = CASE WHEN i.ends THEN NULL WHEN i.retries THEN t.now WHEN i.waits THEN c.submitted_at ELSE c.backlog_at END,
        backlog_retry = CASE WHEN i.waits THEN i.retries ELSE c.backlog_retry END,
        cancel_requested = c.cancel_requested OR i.cancel,
        finished_at = CASE WHEN i.ends THEN t.now END,
        class = i.class,
        message = i.message
    FROM UNNEST(
        (SELECT $1::uuid[]), $2::text[], $3::int[], $4::text[], $5::uuid[], $6::boolean[],
        $7::text[], $8::int[], $9::boolean[], $10::timestamptz[], $11::timestamptz[], $12::boolean[], $13::boolean[],
        $14::boolean[], $15::text[], $16::text[],
        $17::boolean[], $18::bigint[], $19::text[], $20::text[], $21::text[], $22::timestamptz[], $23::text[], $24::text[]
    ) AS i (id, was_state, was_attempt, was_worker, was_claim, was_cancel,
            state, attempt, ends, wake_at, deadline_at, waits, retries,
            cancel, class, message,
            audit, duration_ms, audit_class, audit_message, audit_details, retry_at, output, answered_by),
        (SELECT clock_timestamp() AS now) t
    WHERE c.id = ANY (ARRAY[i.id])
        AND c.state = i.was_state
        AND c.attempt = i.was_attempt
        AND (i.was_worker IS NULL OR c.worker = i.was_worker)
        AND (i.was_claim IS NULL OR c.claim_id = i.was_claim)
        AND (i.was_cancel IS NULL OR c.cancel_requested = i.was_cancel)
    RETURNING
        c.id, c.attempt, c.tool, c.tenant, c.traceparent, c.notify, c.worker, c.claim_id, c.submitted_at,
        CASE WHEN i.ends OR (i.audit AND i.state = 'retry_wait') THEN c.task_id END AS notified_task, i.ends,
        c.started_at, t.now, i.audit, i.duration_ms,
        i.audit_class, i.audit_message, i.audit_details, i.retry_at, i.output, i.answered_by
), audited AS (
    INSERT INTO attempts (
        call_id, attempt, worker, started_at, ended_at, duration_ms, class, message, details, retry_at, output)
    SELECT
        id, attempt, COALESCE(answered_by, worker), CASE WHEN answered_by IS NULL THEN started_at ELSE submitted_at END, now, duration_ms, audit_class, audit_message, audit_details::json,
        retry_at, output::json
    FROM changed
    WHERE audit
), notified AS (
    INSERT INTO task_inbox (task_id, kind, call_id, attempt, class, message, next_at, at)
    SELECT
        notified_task, CASE WHEN ends THEN 'ended' ELSE 'retrying' END, id, attempt, audit_class, audit_message,
        retry_at, now
    FROM changed
    WHERE notified_task IS NOT NULL
), counted AS (
    INSERT INTO uncounted_calls (call_id, ended_at) SELECT id, now FROM changed WHERE ends
), told AS (
    INSERT INTO untold_ends (id, is_task, ended_at)
    SELECT c.id, false, c.now FROM changed c
    WHERE c.ends AND (SELECT w.id FROM webhooks w WHERE w.tenant = c.tenant AND w.state = 'active' LIMIT 1) IS NOT NULL
)
SELECT id AS "id!", attempt AS "attempt!", tool AS "tool!", tenant AS "tenant!", traceparent, notify AS "notify!", worker, claim_id,
    submitted_at AS "submitted_at!", now AS "at!", notified_task
FROM changed
