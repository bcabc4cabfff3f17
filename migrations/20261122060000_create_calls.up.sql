-- Calls, their attempts, and the views that an operator queries.
--
-- Why the tables have this shape:
-- * A call's row is written three times at most in the common case: submitted, claimed, ended. The result goes into the
--   attempt's row, which is written once, so a change of state never rewrites a payload.
-- * Columns that never change come first, then those that change: an update's log record leaves out what is the same at
--   the start of the row, which is the arguments above all (measured: 150 bytes instead of 490).
-- * `wake_at` says when the sweeper must look at the call; it may be too early, never too late. A claim sets it to the end
--   of the lease only if that is earlier, and a renewed lease does not change it: the sweeper moves it when it looks and
--   nothing is due. With the default lease (15 s) a claim leaves it as it is, because a published job is checked after
--   10 s, and a call that ends before that is never swept.
-- * So a claim changes no indexed column with the default lease, and is a HOT update. A page of calls is often claimed
--   together, so fillfactor leaves room for a second version of every call on the page; with less room most claims moved
--   to another page and entered every index again (measured: 10 index entries for a call instead of 5).
-- * JSON from outside is `json`, not `jsonb`: it is kept byte for byte, and no valid JSON is refused (jsonb refuses
--   \u0000, lone surrogates and huge exponents).

CREATE TABLE calls (
    id               uuid        PRIMARY KEY,
    submitted_at     timestamptz NOT NULL,
    deadline_at      timestamptz NOT NULL,
    timeout_ms       bigint      NOT NULL,
    redrive_of       uuid,
    origin_id        uuid,
    content          uuid,
    notify           boolean     NOT NULL,
    tool             text        NOT NULL,
    pool             text        NOT NULL,
    effect           text        NOT NULL CHECK (effect IN ('read', 'idempotent', 'keyed', 'unsafe')),
    tenant           text        NOT NULL,
    key              text,
    conversation     text,
    traceparent      text,
    retry            json,
    arguments        json        NOT NULL,
    repairs          json,
    details          json,
    -- The columns below change.
    published_at     timestamptz NOT NULL,
    publish_no       int         NOT NULL DEFAULT 1,
    attempt          int         NOT NULL DEFAULT 0,
    wake_at          timestamptz,
    started_at       timestamptz,
    lease_until      timestamptz,
    finished_at      timestamptz,
    claim_id         uuid,
    cancel_requested boolean     NOT NULL DEFAULT false,
    state            text        NOT NULL CHECK (state IN ('ready', 'running', 'retry_wait', 'succeeded', 'failed',
                                                           'unknown', 'cancelled', 'refused')),
    worker           text,
    class            text,
    message          text,
    -- The turn of a task that asked for this call: call_index 0 is the request to the model, its tool calls count from 1.
    -- All three are set or none; a CHECK of that would cost every bare call (measured: 5 % of its submission).
    task_id          uuid,
    turn             int,
    call_index       int,
    CHECK ((wake_at IS NULL) = (state NOT IN ('ready', 'running', 'retry_wait'))),
    CHECK ((finished_at IS NULL) = (wake_at IS NOT NULL))
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);

-- Few on purpose: each index costs every submission. None may contain a column that every claim changes.
CREATE UNIQUE INDEX calls_key ON calls (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX calls_wake ON calls (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX calls_tool ON calls (tool, id);
CREATE INDEX calls_conversation ON calls (conversation, id) WHERE conversation IS NOT NULL;
CREATE INDEX calls_class ON calls (class, id) WHERE class IS NOT NULL;
CREATE UNIQUE INDEX calls_redrive ON calls (redrive_of) WHERE redrive_of IS NOT NULL;
CREATE UNIQUE INDEX calls_task ON calls (task_id, turn, call_index) WHERE task_id IS NOT NULL;

CREATE FUNCTION refuse_change_of_ended_call() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'call % has ended as %: ended calls never change', OLD.id, OLD.state
        USING ERRCODE = 'check_violation';
END
$$;

CREATE TRIGGER ended_calls_never_change BEFORE UPDATE ON calls FOR EACH ROW
    WHEN (OLD.wake_at IS NULL) EXECUTE FUNCTION refuse_change_of_ended_call();

-- No foreign key to calls: its check would lock and dirty the call's row once more for each attempt. The statement that
-- writes an attempt also changes its call, and retention deletes both together.
CREATE TABLE attempts (
    call_id        uuid        NOT NULL,
    attempt        int         NOT NULL,
    worker         text        NOT NULL,
    started_at     timestamptz NOT NULL,
    ended_at       timestamptz NOT NULL,
    duration_ms    bigint,
    class          text,
    message        text,
    details        json,
    retry_at       timestamptz,
    output         json,
    PRIMARY KEY (call_id, attempt),
    CHECK ((class IS NULL) = (output IS NOT NULL))
);

CREATE TABLE late_reports (
    call_id     uuid        NOT NULL,
    attempt     int         NOT NULL,
    worker      text        NOT NULL,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    class       text,
    message     text,
    output      json
);
CREATE INDEX late_reports_call ON late_reports (call_id);
CREATE INDEX late_reports_received ON late_reports (received_at);

CREATE TABLE dead_letters (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source      text        NOT NULL CHECK (source IN ('intake', 'results')),
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    code        text        NOT NULL,
    message     text        NOT NULL,
    payload     bytea       NOT NULL
);
CREATE INDEX dead_letters_received ON dead_letters (received_at);

CREATE TABLE tools (
    name          text        PRIMARY KEY,
    spec          json        NOT NULL,
    registered_by text        NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE workers (
    id           text        PRIMARY KEY,
    version      text        NOT NULL,
    tools        text[]      NOT NULL,
    started_at   timestamptz NOT NULL,
    slots        int         NOT NULL,
    running      int         NOT NULL DEFAULT 0,
    draining     boolean     NOT NULL DEFAULT false,
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE retry_budgets (
    tool       text             PRIMARY KEY,
    tokens     double precision NOT NULL,
    updated_at timestamptz      NOT NULL DEFAULT clock_timestamp()
);

-- For operators.

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

CREATE VIEW attempt_history AS
SELECT a.call_id AS call, a.attempt, c.tool, a.worker, a.started_at, a.ended_at, a.duration_ms,
       CASE WHEN a.class IS NULL THEN 'succeeded' ELSE 'failed' END AS outcome,
       a.class, a.message, a.details, a.retry_at, a.output
FROM attempts a
JOIN calls c ON c.id = a.call_id
UNION ALL
SELECT c.id, c.attempt, c.tool, c.worker, c.started_at, NULL, NULL, 'running', NULL, NULL, NULL, NULL, NULL
FROM calls c
WHERE c.state = 'running' AND c.wake_at IS NOT NULL;

COMMENT ON TABLE calls IS 'One row per call. Written by dispatchers only; read call_history instead.';
COMMENT ON TABLE attempts IS 'One row per ended attempt, written once. Read attempt_history instead.';
COMMENT ON TABLE late_reports IS 'Reports of attempts whose lease was over: kept for the audit, without effect.';
COMMENT ON TABLE dead_letters IS 'Messages of the intake and result streams that could not be accepted, with the reason.';
COMMENT ON TABLE tools IS 'The registry: every tool that a worker has ever registered, as of its last registration.';
COMMENT ON TABLE workers IS 'Workers as of their last heartbeat.';
COMMENT ON TABLE retry_budgets IS 'Retry tokens per tool: a success earns 0.1, a retry costs 1, at most 100.';

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

COMMENT ON VIEW attempt_history IS 'Every attempt, running ones included.';
COMMENT ON COLUMN attempt_history.call IS 'The call.';
COMMENT ON COLUMN attempt_history.attempt IS 'From 1, without gaps.';
COMMENT ON COLUMN attempt_history.tool IS 'Name of the tool.';
COMMENT ON COLUMN attempt_history.worker IS 'The worker that ran it.';
COMMENT ON COLUMN attempt_history.started_at IS 'When it was granted, by the database''s clock.';
COMMENT ON COLUMN attempt_history.ended_at IS 'When its end was committed, by the database''s clock.';
COMMENT ON COLUMN attempt_history.duration_ms IS 'How long the tool ran, by the worker''s clock; empty if the worker was lost.';
COMMENT ON COLUMN attempt_history.outcome IS 'running, succeeded or failed.';
COMMENT ON COLUMN attempt_history.class IS 'Error class.';
COMMENT ON COLUMN attempt_history.message IS 'The error in words.';
COMMENT ON COLUMN attempt_history.details IS 'Rules that the arguments break.';
COMMENT ON COLUMN attempt_history.retry_at IS 'When the next attempt was planned.';
COMMENT ON COLUMN attempt_history.output IS 'The tool''s result, byte for byte.';
