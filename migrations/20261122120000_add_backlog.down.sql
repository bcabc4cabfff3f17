-- A view cannot lose columns: it is made again.
DROP VIEW call_history;
CREATE VIEW call_history AS
SELECT c.id AS call,
       c.tool,
       c.state,
       c.class,
       c.message,
       c.attempt AS attempts,
       c.submitted_at,
       c.finished_at,
       round(extract(epoch FROM (c.finished_at - c.submitted_at)) * 1000)::bigint AS total_ms,
       CASE WHEN c.state = 'retry_wait' THEN c.wake_at END AS next_attempt_at,
       c.conversation,
       c.tenant,
       c.key,
       c.pool,
       c.effect,
       c.worker AS last_worker,
       c.redrive_of,
       c.details,
       c.repairs,
       c.arguments,
       a.output,
       c.task_id AS task,
       c.turn,
       c.call_index
FROM calls c
LEFT JOIN attempts a ON a.call_id = c.id AND a.attempt = c.attempt AND c.state = 'succeeded';

COMMENT ON VIEW call_history IS 'Every call with its result. Newest first: ORDER BY call DESC.';
COMMENT ON COLUMN call_history.call IS 'Id; version 7 UUID, so it sorts by submission.';
COMMENT ON COLUMN call_history.tool IS 'Name of the tool.';
COMMENT ON COLUMN call_history.state IS 'ready, running, retry_wait; or ended: succeeded, failed, unknown, cancelled, refused.';
COMMENT ON COLUMN call_history.class IS 'Error class of a call that ended without success.';
COMMENT ON COLUMN call_history.message IS 'The error in words.';
COMMENT ON COLUMN call_history.attempts IS 'Attempts started.';
COMMENT ON COLUMN call_history.submitted_at IS 'When the submission was committed, by the database''s clock.';
COMMENT ON COLUMN call_history.finished_at IS 'When the end was committed, by the database''s clock.';
COMMENT ON COLUMN call_history.total_ms IS 'From submission to end, in milliseconds.';
COMMENT ON COLUMN call_history.next_attempt_at IS 'When the next attempt is due, in state retry_wait.';
COMMENT ON COLUMN call_history.conversation IS 'The caller''s conversation, if it named one.';
COMMENT ON COLUMN call_history.tenant IS 'Scope of the idempotency key.';
COMMENT ON COLUMN call_history.key IS 'Idempotency key of the submission.';
COMMENT ON COLUMN call_history.pool IS 'The group of workers that runs it.';
COMMENT ON COLUMN call_history.effect IS 'What the tool does to the outside world: read, idempotent, keyed, unsafe.';
COMMENT ON COLUMN call_history.last_worker IS 'The worker that ran the last attempt.';
COMMENT ON COLUMN call_history.redrive_of IS 'The ended call that this one runs again.';
COMMENT ON COLUMN call_history.details IS 'Rules that the arguments break, for refused calls.';
COMMENT ON COLUMN call_history.repairs IS 'Lossless changes that made the arguments fit the schema.';
COMMENT ON COLUMN call_history.arguments IS 'As the tool gets them: as sent, except for the repairs.';
COMMENT ON COLUMN call_history.output IS 'The tool''s result, byte for byte.';
COMMENT ON COLUMN call_history.task IS 'The task that asked for it; empty for a bare call.';
COMMENT ON COLUMN call_history.turn IS 'The turn of the task that asked for it, from 1.';
COMMENT ON COLUMN call_history.call_index IS 'Its number within that turn: 0 is the request to the model, its tool calls count from 1.';

DROP TABLE job_stream;
ALTER TABLE retry_budgets
    DROP COLUMN per_second, DROP COLUMN usual_rate, DROP COLUMN successes, DROP COLUMN failures,
    DROP COLUMN stepped_at, DROP COLUMN learned, DROP COLUMN learned_since, DROP COLUMN failing_since, DROP COLUMN recovering_since;
COMMENT ON TABLE retry_budgets IS 'Retry tokens per tool: a success earns 0.1, a retry costs 1, at most 100.';
ALTER TABLE tools DROP COLUMN last_served_at;
ALTER TABLE workers DROP COLUMN consumers, DROP COLUMN live_until;
DROP TABLE consumers;
DROP INDEX calls_backlog, calls_wake;
CREATE INDEX calls_wake ON calls (wake_at) WHERE wake_at IS NOT NULL;
-- A call that waits counts as published: the sweeper of the earlier version publishes it again. Refused calls, and those
-- that ended before a job of theirs was published, need a time, too.
ALTER TABLE calls DISABLE TRIGGER ended_calls_never_change;
UPDATE calls SET published_at = submitted_at WHERE published_at IS NULL;
ALTER TABLE calls ENABLE TRIGGER ended_calls_never_change;
UPDATE calls SET wake_at = clock_timestamp() WHERE backlog_at IS NOT NULL;
ALTER TABLE calls
    ALTER COLUMN published_at SET NOT NULL,
    DROP COLUMN consumer, DROP COLUMN backlog_at, DROP COLUMN backlog_retry;
