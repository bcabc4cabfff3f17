-- Functions of the client: calls that no worker runs. Such a call is in state `client_wait` until its client answers it, or
-- until its deadline, which is its wake_at. It is in pool `@client`, never in the backlog, and no claim grants it.
-- The checks are not validated here: that reads the whole table, which the next migration does without keeping others from it.
ALTER TABLE calls
    DROP CONSTRAINT calls_state_check,
    DROP CONSTRAINT calls_check,
    ADD CONSTRAINT calls_state_check CHECK (state IN ('ready', 'running', 'retry_wait', 'client_wait', 'succeeded', 'failed',
        'unknown', 'cancelled', 'refused')) NOT VALID,
    ADD CONSTRAINT calls_check CHECK ((wake_at IS NULL) = (state NOT IN ('ready', 'running', 'retry_wait', 'client_wait'))) NOT VALID;

-- The client's own notes.
ALTER TABLE tasks ADD COLUMN metadata json;

COMMENT ON COLUMN call_history.state IS 'ready, running, retry_wait, client_wait; or ended: succeeded, failed, unknown, cancelled, refused.';
COMMENT ON COLUMN attempt_history.worker IS 'The worker that ran it; "client" and the user who answered, for a function of the client.';
