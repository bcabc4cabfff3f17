DROP VIEW message_history, task_history, call_history;
ALTER TABLE calls DROP COLUMN task_id, DROP COLUMN turn, DROP COLUMN call_index;
DROP TABLE messages, task_steps, task_inbox, tasks;
DROP FUNCTION refuse_change_of_ended_task();

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
       a.output
FROM calls c
LEFT JOIN attempts a ON a.call_id = c.id AND a.attempt = c.attempt AND c.state = 'succeeded';

COMMENT ON VIEW call_history IS 'Every call with its result. Newest first: ORDER BY call DESC.';
COMMENT ON COLUMN call_history.call IS 'Id; version 7 UUID, so it sorts by submission.';
COMMENT ON COLUMN call_history.tool IS 'Name of the tool.';
COMMENT ON COLUMN call_history.state IS 'ready, running, retry_wait; or ended: succeeded, failed, unknown, cancelled, refused.';
COMMENT ON COLUMN call_history.class IS 'Error class of a call that ended without success.';
COMMENT ON COLUMN call_history.message IS 'The same in words.';
COMMENT ON COLUMN call_history.attempts IS 'Attempts started.';
COMMENT ON COLUMN call_history.submitted_at IS 'When the submission was committed, by the database''s clock.';
COMMENT ON COLUMN call_history.finished_at IS 'When the end was committed, by the database''s clock.';
COMMENT ON COLUMN call_history.total_ms IS 'From submission to end, in milliseconds.';
COMMENT ON COLUMN call_history.next_attempt_at IS 'When the next attempt is due, in state retry_wait.';
COMMENT ON COLUMN call_history.conversation IS 'The caller''s conversation, if it named one.';
COMMENT ON COLUMN call_history.tenant IS 'Scope of the idempotency key.';
COMMENT ON COLUMN call_history.key IS 'Idempotency key of the submission.';
COMMENT ON COLUMN call_history.pool IS 'The group of workers it goes to.';
COMMENT ON COLUMN call_history.effect IS 'What the tool does to the world: read, idempotent, keyed, unsafe.';
COMMENT ON COLUMN call_history.last_worker IS 'Who ran the last attempt.';
COMMENT ON COLUMN call_history.redrive_of IS 'The ended call that this one runs again.';
COMMENT ON COLUMN call_history.details IS 'Broken rules of the arguments, for refused calls.';
COMMENT ON COLUMN call_history.repairs IS 'What was changed in the arguments, without loss, to fit the schema.';
COMMENT ON COLUMN call_history.arguments IS 'As the tool gets them: as sent, but for the repairs.';
COMMENT ON COLUMN call_history.output IS 'The tool''s result, to the letter.';
