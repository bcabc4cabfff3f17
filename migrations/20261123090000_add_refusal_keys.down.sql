DROP INDEX calls_key;
-- Ended calls never change, but a refused call must not hold its key.
ALTER TABLE calls DISABLE TRIGGER ended_calls_never_change;
UPDATE calls SET key = NULL, content = NULL WHERE refused AND key IS NOT NULL;
ALTER TABLE calls ENABLE TRIGGER ended_calls_never_change;
CREATE UNIQUE INDEX calls_key ON calls (tenant, key) WHERE key IS NOT NULL;
ALTER TABLE calls DROP COLUMN refused;
COMMENT ON COLUMN call_history.key IS 'Idempotency key of the submission.';
COMMENT ON COLUMN call_history.next_attempt_at IS 'When the next attempt is due, in state retry_wait.';
COMMENT ON COLUMN attempt_history.retry_at IS 'When the next attempt was planned.';
