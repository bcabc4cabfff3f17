-- A refused call keeps the key of its submission, so that a submission that is sent again, or a file that is submitted again,
-- finds it instead of writing it once more. The key stays free: the corrected submission may use it, and so may the same one
-- once it is valid (its tool is registered, say). So one index holds both: a key that is taken, and apart from it a refusal
-- for each content. `refused` never changes, so a claim still changes no indexed column.

ALTER TABLE calls ADD COLUMN refused boolean NOT NULL DEFAULT false;

DROP INDEX calls_key;
CREATE UNIQUE INDEX calls_key
    ON calls (tenant, key, (CASE WHEN refused THEN content ELSE '00000000-0000-0000-0000-000000000000' END))
    WHERE key IS NOT NULL;

COMMENT ON COLUMN call_history.key IS 'Idempotency key of the submission. A refused call does not hold it: another call may have the same.';
COMMENT ON COLUMN call_history.next_attempt_at IS 'When the retry is due, in state retry_wait. The retry budget of its tool may then hold it back: see waits_for.';
COMMENT ON COLUMN attempt_history.retry_at IS 'When the retry was due.';
