-- Ends calls that succeeded, as apply.sql does, which has a column for everything that a transition may write: most calls succeed, and
-- this takes a sixth less of Postgres's time. A call that no longer matches its guard stays unchanged and is not in the answer.
WITH changed AS (
    UPDATE calls c
    SET state = 'succeeded', wake_at = NULL, backlog_at = NULL, finished_at = t.now
    FROM UNNEST((SELECT $1::uuid[]), $2::int[], $3::text[], $4::uuid[], $5::bigint[], $6::text[])
            AS i (id, was_attempt, was_worker, was_claim, duration_ms, output),
        (SELECT clock_timestamp() AS now) t
    WHERE c.id = ANY (ARRAY[i.id])
        AND c.state = 'running' AND c.attempt = i.was_attempt AND c.worker = i.was_worker AND c.claim_id = i.was_claim
    RETURNING
        c.id, c.attempt, c.tool, c.tenant, c.traceparent, c.notify, c.worker, c.claim_id, c.submitted_at, c.task_id, c.started_at,
        t.now, i.duration_ms, i.output
), audited AS (
    INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, duration_ms, output)
    SELECT id, attempt, worker, started_at, now, duration_ms, output::json FROM changed
), notified AS (
    INSERT INTO task_inbox (task_id, kind, call_id, attempt, at)
    SELECT task_id, 'ended', id, attempt, now FROM changed WHERE task_id IS NOT NULL
), counted AS (
    INSERT INTO uncounted_calls (call_id, ended_at) SELECT id, now FROM changed
), told AS (
    INSERT INTO untold_ends (id, is_task, ended_at)
    SELECT c.id, false, c.now FROM changed c
    WHERE (SELECT w.id FROM webhooks w WHERE w.tenant = c.tenant AND w.state = 'active' LIMIT 1) IS NOT NULL
)
SELECT id AS "id!", attempt AS "attempt!", tool AS "tool!", tenant AS "tenant!", traceparent, notify AS "notify!", worker, claim_id,
    submitted_at AS "submitted_at!", now AS "at!", task_id AS notified_task
FROM changed
