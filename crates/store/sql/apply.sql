-- Changes calls and writes the attempts that this ends, in one statement. A call that no longer matches its guard
-- stays unchanged and is not in the answer. The task of a call that ends or will be retried gets an item in its inbox.
WITH changed AS (
    UPDATE calls c
    SET state = i.state,
        attempt = i.attempt,
        wake_at = CASE WHEN i.ends THEN NULL ELSE COALESCE(i.wake_at, c.wake_at) END,
        publish_no = c.publish_no + i.publish::int,
        published_at = CASE WHEN i.publish THEN t.now ELSE c.published_at END,
        cancel_requested = c.cancel_requested OR i.cancel,
        finished_at = CASE WHEN i.ends THEN t.now END,
        class = i.class,
        message = i.message
    FROM UNNEST(
        $1::uuid[], $2::text[], $3::int[], $4::text[], $5::uuid[], $6::boolean[],
        $7::text[], $8::int[], $9::boolean[], $10::timestamptz[], $11::boolean[], $12::boolean[],
        $13::text[], $14::text[],
        $15::boolean[], $16::bigint[], $17::text[], $18::text[], $19::text[], $20::timestamptz[], $21::text[]
    ) AS i (id, was_state, was_attempt, was_worker, was_claim, was_cancel,
            state, attempt, ends, wake_at, publish, cancel,
            class, message,
            audit, duration_ms, audit_class, audit_message, audit_details, retry_at, output),
        (SELECT clock_timestamp() AS now) t
    WHERE c.id = ANY (ARRAY[i.id])
        AND c.state = i.was_state
        AND c.attempt = i.was_attempt
        AND (i.was_worker IS NULL OR c.worker = i.was_worker)
        AND (i.was_claim IS NULL OR c.claim_id = i.was_claim)
        AND (i.was_cancel IS NULL OR c.cancel_requested = i.was_cancel)
    RETURNING
        c.id, c.attempt, c.tool, c.pool, c.publish_no, c.traceparent, c.notify, c.worker, c.submitted_at,
        CASE WHEN i.publish THEN octet_length(c.arguments::text) ELSE 0 END AS bytes,
        CASE WHEN i.ends OR (i.audit AND i.state = 'retry_wait') THEN c.task_id END AS notified_task, i.ends,
        i.was_attempt, c.started_at, t.now, i.audit, i.duration_ms,
        i.audit_class, i.audit_message, i.audit_details, i.retry_at, i.output
), audited AS (
    INSERT INTO attempts (
        call_id, attempt, worker, started_at, ended_at, duration_ms, class, message, details, retry_at, output)
    SELECT
        id, was_attempt, worker, started_at, now, duration_ms, audit_class, audit_message, audit_details::json,
        retry_at, output::json
    FROM changed
    WHERE audit
), notified AS (
    INSERT INTO task_inbox (task_id, kind, call_id, attempt, class, message, next_at, at)
    SELECT
        notified_task, CASE WHEN ends THEN 'ended' ELSE 'retrying' END, id, was_attempt, audit_class, audit_message,
        retry_at, now
    FROM changed
    WHERE notified_task IS NOT NULL
)
SELECT id AS "id!", attempt AS "attempt!", tool AS "tool!", pool AS "pool!", publish_no AS "publish_no!", traceparent,
    notify AS "notify!", worker, submitted_at AS "submitted_at!", now AS "at!", bytes AS "bytes!",
    notified_task
FROM changed
