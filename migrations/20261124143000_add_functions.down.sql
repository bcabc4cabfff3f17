-- Calls that wait for their clients end, and their tasks go on without a result; the earlier version has no other way out of this
-- state, and does not know the class.
WITH ended AS (
    UPDATE calls
    SET state = 'failed', class = 'timeout', message = 'the client did not answer', wake_at = NULL, finished_at = clock_timestamp()
    WHERE state = 'client_wait'
    RETURNING id, task_id, attempt, finished_at
)
INSERT INTO task_inbox (task_id, kind, call_id, attempt, at)
SELECT task_id, 'ended', id, attempt, finished_at FROM ended WHERE task_id IS NOT NULL;
ALTER TABLE calls DISABLE TRIGGER ended_calls_never_change;
UPDATE calls SET class = 'timeout' WHERE class = 'unanswered';
ALTER TABLE calls ENABLE TRIGGER ended_calls_never_change;
UPDATE messages SET class = 'timeout' WHERE class = 'unanswered';

ALTER TABLE calls
    DROP CONSTRAINT calls_state_check,
    DROP CONSTRAINT calls_check,
    ADD CONSTRAINT calls_state_check CHECK (state IN ('ready', 'running', 'retry_wait', 'succeeded', 'failed',
        'unknown', 'cancelled', 'refused')),
    ADD CONSTRAINT calls_check CHECK ((wake_at IS NULL) = (state NOT IN ('ready', 'running', 'retry_wait')));
ALTER TABLE tasks DROP COLUMN metadata;
COMMENT ON COLUMN call_history.state IS 'ready, running, retry_wait; or ended: succeeded, failed, unknown, cancelled, refused.';
COMMENT ON COLUMN attempt_history.worker IS 'The worker that ran it.';
