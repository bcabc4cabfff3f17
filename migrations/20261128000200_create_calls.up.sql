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
-- * The queue is short: NATS holds a window of jobs, and the other calls that are ready wait here. A call waits if, and only if,
--   backlog_at is set; it is also its position in the backlog of its tool. A call whose job was published at once never enters that
--   index, so below the window the backlog costs nothing. Retries wait apart from first attempts (backlog_retry), because they also
--   need a token of the tool's retry budget.
-- * A function of the client is a call that no worker runs: in state `client_wait` until its client answers it, or until its deadline,
--   which is its wake_at. It is in pool `@client`, never in the backlog, and no claim grants it.
-- * Both tables are partitioned by ranges of ids, which begin with the time at which they were made: create_call_partitions.
-- * An index of a partitioned table is unique within a partition only. So what must be unique over all time has tables of its own:
--   keys, calls that were redriven, and the calls of a turn of a task.

CREATE TABLE calls (
    id               uuid        NOT NULL,
    submitted_at     timestamptz NOT NULL,
    deadline_at      timestamptz NOT NULL,
    timeout_ms       bigint      NOT NULL,
    redrive_of       uuid,
    origin_id        uuid,
    content          uuid,
    -- The version of the tool that its arguments were accepted for; NULL: they have no schema.
    tool_version     uuid,
    -- The turn of a task that asked for this call: call_index 0 is the request to the model, its tool calls count from 1.
    -- All three are set or none; a CHECK of that would cost every bare call (measured: 5 % of its submission).
    task_id          uuid,
    turn             int,
    call_index       int,
    notify           boolean     NOT NULL,
    tool             text        NOT NULL,
    pool             text        NOT NULL,
    effect           text        NOT NULL CHECK (effect IN ('read', 'idempotent', 'keyed', 'unsafe')),
    tenant           text        NOT NULL,
    submitted_by     text,
    key              text,
    conversation     text,
    traceparent      text,
    retry            json,
    arguments        json        NOT NULL,
    -- What the check of the arguments found.
    repairs          json,
    details          json,
    undeclared       json,       -- JSON pointers to properties that the tool's schema does not declare; NULL: none
    help             json,       -- of a refused call: what helps to correct it
    -- The columns below change.
    published_at     timestamptz,
    publish_no       int         NOT NULL DEFAULT 1,
    attempt          int         NOT NULL DEFAULT 0,
    wake_at          timestamptz,
    backlog_at       timestamptz,
    backlog_retry    boolean     NOT NULL DEFAULT false,
    -- Where the job was last published: to the workers of one pool that have the same tools.
    consumer         text,
    started_at       timestamptz,
    lease_until      timestamptz,
    finished_at      timestamptz,
    claim_id         uuid,
    cancel_requested boolean     NOT NULL DEFAULT false,
    state            text        NOT NULL CHECK (state IN ('ready', 'running', 'retry_wait', 'client_wait', 'succeeded', 'failed',
                                                           'unknown', 'cancelled', 'refused')),
    worker           text,
    class            text,
    message          text,
    -- `state` changes with each claim, and so does whether it is in a partial index. This repeats it once a call has ended without
    -- success; before that it is NULL, whatever happens to the call.
    ended_as         text        GENERATED ALWAYS AS (CASE WHEN finished_at IS NOT NULL AND state <> 'succeeded' THEN state END) STORED,
    PRIMARY KEY (id),
    CHECK ((wake_at IS NULL) = (state NOT IN ('ready', 'running', 'retry_wait', 'client_wait'))),
    CHECK ((finished_at IS NULL) = (wake_at IS NOT NULL))
) PARTITION BY RANGE (id);

-- Few on purpose: each index costs every submission. None may contain a column that every claim changes.
-- What waits is due at its deadline, perhaps a million calls at once, so due times are in two parts of their index: the sweeper looks
-- into both, and a retry that is due does not wait for them.
CREATE INDEX calls_wake ON calls (num_nonnulls(backlog_at), wake_at) WHERE wake_at IS NOT NULL;
-- The backlog. It leads with the tool: calls of a tool that no worker has are never in the way of others. Each tenant has its own place,
-- so that none waits behind the flood of another: the feeder finds who waits without reading what waits, and takes from each in turn.
CREATE INDEX calls_waiting ON calls (tool, backlog_retry, tenant COLLATE "C", backlog_at, id) WHERE backlog_at IS NOT NULL;
CREATE INDEX calls_tool ON calls (tool, id);
CREATE INDEX calls_conversation ON calls (conversation, id) WHERE conversation IS NOT NULL;
CREATE INDEX calls_class ON calls (class, id) WHERE class IS NOT NULL;
CREATE INDEX calls_ended_as ON calls (ended_as, id) WHERE ended_as IS NOT NULL;
-- Ended calls only: what feeds follow. Ends are written in batches with one time, so most entries share a key.
CREATE INDEX calls_finished ON calls (finished_at) WHERE finished_at IS NOT NULL;
-- Lists of a tenant, newest first, and its feed. The tenant `default`, which is the only one of most installations, is not in these, and
-- pays nothing for them: its calls are found along the primary key and calls_finished.
CREATE INDEX calls_tenant ON calls (tenant, id) WHERE tenant <> 'default';
CREATE INDEX calls_tenant_finished ON calls (tenant, finished_at) WHERE finished_at IS NOT NULL AND tenant <> 'default';

CREATE FUNCTION refuse_change_of_ended_call() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'call % has ended as %: ended calls never change', OLD.id, OLD.state
        USING ERRCODE = 'check_violation';
END
$$;

-- A trigger before an update would lock each row first, in a write of its own; one after it only reads the row that was there. Both
-- refuse the statement.
CREATE TRIGGER ended_calls_never_change AFTER UPDATE ON calls FOR EACH ROW
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
) PARTITION BY RANGE (call_id);
-- The calls of a worker: `worker` of a call changes with each claim, an attempt is written once. Running attempts are found through
-- calls_wake, because there are never more of them than a worker has slots.
CREATE INDEX attempts_worker ON attempts (worker, call_id);

-- Which call has a key. A refused call does not hold its key: the corrected submission may use it, and so may the same one once it is
-- valid (its tool is registered, say). It is on record once for each content, so that a submission that is sent again finds it.
CREATE TABLE call_keys (
    tenant  text NOT NULL,
    key     text NOT NULL,
    -- The content of a refused submission; of the call that holds the key, zeros.
    refused uuid NOT NULL,
    call_id uuid NOT NULL,
    PRIMARY KEY (tenant, key, refused)
);
-- Each call is redriven at most once.
CREATE TABLE redriven_calls (
    call_id     uuid PRIMARY KEY,
    redriven_as uuid NOT NULL
);
-- The calls of a task, in order. call_index 0 is the request to the model.
CREATE TABLE task_calls (
    task_id    uuid NOT NULL,
    turn       int  NOT NULL,
    call_index int  NOT NULL,
    call_id    uuid NOT NULL,
    PRIMARY KEY (task_id, turn, call_index)
);
-- Found when their calls are deleted; ids grow with time, so a new entry is always the last one.
CREATE INDEX call_keys_call ON call_keys (call_id);
CREATE INDEX redriven_calls_as ON redriven_calls (redriven_as);
CREATE INDEX task_calls_call ON task_calls (call_id);

-- Kept only while the call is on record: an erasure finds nothing else.
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
       c.call_index,
       CASE WHEN c.state = 'ready' THEN
           CASE WHEN c.backlog_at IS NULL THEN 'queue'
                WHEN NOT EXISTS (
                    SELECT FROM workers w
                    WHERE c.tool = ANY (w.tools) AND NOT w.draining AND w.live_until > clock_timestamp()) THEN 'worker'
                WHEN c.backlog_retry THEN 'retries'
                ELSE 'backlog' END END AS waits_for,
       CASE WHEN c.state = 'ready' THEN COALESCE(
           (SELECT b.retry_at FROM attempts b WHERE b.call_id = c.id AND b.attempt = c.attempt), c.submitted_at)
           END AS waits_since
FROM calls c
LEFT JOIN attempts a ON a.call_id = c.id AND a.attempt = c.attempt AND c.state = 'succeeded';

CREATE VIEW attempt_history AS
SELECT a.call_id AS call, a.attempt, c.tool, a.worker, a.started_at, a.ended_at, a.duration_ms,
       CASE WHEN a.class IS NULL THEN 'succeeded' ELSE 'failed' END AS outcome,
       a.class, a.message, a.details, a.retry_at, a.output, NULL::timestamptz AS unheard_since
FROM attempts a
JOIN calls c ON c.id = a.call_id
UNION ALL
SELECT c.id, c.attempt, c.tool, c.worker, c.started_at, NULL, NULL, 'running', NULL, NULL, NULL, NULL, NULL,
       -- An attempt of an unsafe tool goes on although its lease has ended.
       CASE WHEN c.lease_until < clock_timestamp() THEN c.lease_until END
FROM calls c
WHERE c.state = 'running' AND c.wake_at IS NOT NULL;

-- The calls of tasks, found by their task.
CREATE VIEW calls_of_tasks AS
SELECT s.task_id, s.turn, s.call_index, c.id, c.tenant, c.pool, c.tool, c.state, c.class, c.attempt, c.wake_at, c.finished_at,
       c.arguments
FROM task_calls s
JOIN calls c ON c.id = s.call_id;

COMMENT ON TABLE calls IS 'One row per call. Written by dispatchers only; read call_history instead.';
COMMENT ON TABLE attempts IS 'One row per ended attempt, written once. Read attempt_history instead.';
COMMENT ON TABLE call_keys IS 'Idempotency keys of calls, unique over all time that is on record.';
COMMENT ON TABLE redriven_calls IS 'Calls that were redriven, and as which call.';
COMMENT ON TABLE task_calls IS 'The calls of tasks: call_index 0 of a turn is the request to the model.';
COMMENT ON TABLE late_reports IS 'Reports of attempts whose lease was over: kept for the audit, without effect.';

COMMENT ON VIEW call_history IS 'Every call with its result. Newest first: ORDER BY call DESC.';
COMMENT ON COLUMN call_history.call IS 'Id; version 7 UUID, so it sorts by submission.';
COMMENT ON COLUMN call_history.tool IS 'Name of the tool.';
COMMENT ON COLUMN call_history.state IS 'ready, running, retry_wait, client_wait; or ended: succeeded, failed, unknown, cancelled, refused.';
COMMENT ON COLUMN call_history.class IS 'Error class of a call that ended without success.';
COMMENT ON COLUMN call_history.message IS 'The error in words.';
COMMENT ON COLUMN call_history.attempts IS 'Attempts started.';
COMMENT ON COLUMN call_history.submitted_at IS 'When the submission was committed, by the database''s clock.';
COMMENT ON COLUMN call_history.finished_at IS 'When the end was committed, by the database''s clock.';
COMMENT ON COLUMN call_history.total_ms IS 'From submission to end, in milliseconds.';
COMMENT ON COLUMN call_history.next_attempt_at IS 'When the retry is due, in state retry_wait. The retry budget of its tool may then hold it back: see waits_for.';
COMMENT ON COLUMN call_history.conversation IS 'The caller''s conversation, if it named one.';
COMMENT ON COLUMN call_history.tenant IS 'Scope of the idempotency key.';
COMMENT ON COLUMN call_history.key IS 'Idempotency key of the submission. A refused call does not hold it: another call may have the same.';
COMMENT ON COLUMN call_history.pool IS 'The group of workers that runs it.';
COMMENT ON COLUMN call_history.effect IS 'What the tool does to the outside world: read, idempotent, keyed, unsafe.';
COMMENT ON COLUMN call_history.last_worker IS 'The worker that ran the last attempt.';
COMMENT ON COLUMN call_history.redrive_of IS 'The ended call that this one runs again.';
COMMENT ON COLUMN call_history.details IS 'Rules that the arguments break, for refused calls.';
COMMENT ON COLUMN call_history.repairs IS 'Lossless changes that made the arguments fit the schema.';
COMMENT ON COLUMN call_history.arguments IS 'As the tool gets them: as sent, except for the repairs. Of a model''s turn what refers to the messages that it saw.';
COMMENT ON COLUMN call_history.output IS 'The tool''s result, byte for byte.';
COMMENT ON COLUMN call_history.task IS 'The task that asked for it; empty for a bare call.';
COMMENT ON COLUMN call_history.turn IS 'The turn of the task that asked for it, from 1.';
COMMENT ON COLUMN call_history.call_index IS 'Its number within that turn: 0 is the request to the model, its tool calls count from 1.';
COMMENT ON COLUMN call_history.waits_for IS 'What a ready call waits for: queue (its job waits for a free worker), backlog (others of its tool are before it), worker (no live worker has its tool), retries (retries of its tool are held back).';
COMMENT ON COLUMN call_history.waits_since IS 'Since when a ready call waits: since its submission, or since its retry was due.';

COMMENT ON VIEW attempt_history IS 'Every attempt, running ones included.';
COMMENT ON COLUMN attempt_history.call IS 'The call.';
COMMENT ON COLUMN attempt_history.attempt IS 'From 1, without gaps.';
COMMENT ON COLUMN attempt_history.tool IS 'Name of the tool.';
COMMENT ON COLUMN attempt_history.worker IS 'The worker that ran it; "client" and the user who answered, for a function of the client.';
COMMENT ON COLUMN attempt_history.started_at IS 'When it was granted, by the database''s clock.';
COMMENT ON COLUMN attempt_history.ended_at IS 'When its end was committed, by the database''s clock.';
COMMENT ON COLUMN attempt_history.duration_ms IS 'How long the tool ran, by the worker''s clock; empty if the worker was lost.';
COMMENT ON COLUMN attempt_history.outcome IS 'running, succeeded or failed.';
COMMENT ON COLUMN attempt_history.class IS 'Error class.';
COMMENT ON COLUMN attempt_history.message IS 'The error in words.';
COMMENT ON COLUMN attempt_history.details IS 'Rules that the arguments break.';
COMMENT ON COLUMN attempt_history.retry_at IS 'When the retry was due.';
COMMENT ON COLUMN attempt_history.output IS 'The tool''s result, byte for byte.';
COMMENT ON COLUMN attempt_history.unheard_since IS 'Of a running attempt whose worker is silent: when its lease ended.';

COMMENT ON VIEW calls_of_tasks IS 'The calls of tasks, found by their task. Read call_history instead.';
COMMENT ON COLUMN calls_of_tasks.task_id IS 'The task.';
COMMENT ON COLUMN calls_of_tasks.turn IS 'The turn of the task that asked for it, from 1.';
COMMENT ON COLUMN calls_of_tasks.call_index IS 'Its number within that turn: 0 is the request to the model, its tool calls count from 1.';
COMMENT ON COLUMN calls_of_tasks.id IS 'The call.';
COMMENT ON COLUMN calls_of_tasks.tenant IS 'The tenant.';
COMMENT ON COLUMN calls_of_tasks.pool IS 'The group of workers that runs it.';
COMMENT ON COLUMN calls_of_tasks.tool IS 'Name of the tool.';
COMMENT ON COLUMN calls_of_tasks.state IS 'As in call_history.';
COMMENT ON COLUMN calls_of_tasks.class IS 'Error class of a call that ended without success.';
COMMENT ON COLUMN calls_of_tasks.attempt IS 'Attempts started.';
COMMENT ON COLUMN calls_of_tasks.wake_at IS 'When it is looked at next; empty once it has ended.';
COMMENT ON COLUMN calls_of_tasks.finished_at IS 'When its end was committed.';
COMMENT ON COLUMN calls_of_tasks.arguments IS 'As the tool gets them. Of a model''s turn what refers to the messages that it saw.';
