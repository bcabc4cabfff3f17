-- The agent loop: tasks, their inbox, the steps that were decided, and the messages of their conversations.
--
-- Why the tables have this shape:
-- * One transaction advances a batch of tasks. It locks their rows, and everything else that it writes belongs to those
--   rows, so a conversation has one writer and needs no other lock.
-- * The statement that ends a call only inserts into the inbox. It never touches a task's row, so ending calls and
--   advancing tasks never wait for each other, and a call that belongs to no task costs nothing extra.
-- * Retention deletes a task with its whole conversation or not at all: a model must never be shown half of one.

CREATE TABLE tasks (
    id            uuid        PRIMARY KEY,
    tenant        text        NOT NULL,
    submitted_by  text,
    conversation  text        NOT NULL,
    key           text,
    content       uuid,
    agent         text,
    model         text        NOT NULL,
    language      text        NOT NULL CHECK (language IN ('en', 'zh')),
    spec          json        NOT NULL,
    input         text        NOT NULL,
    -- The client's own notes.
    metadata      json,
    state         text        NOT NULL CHECK (state IN ('waiting', 'running', 'succeeded', 'failed', 'cancelled')),
    progress      json,
    last_step     int         NOT NULL DEFAULT 0,
    wake_at       timestamptz,
    traceparent   text,
    submitted_at  timestamptz NOT NULL,
    started_at    timestamptz,
    finished_at   timestamptz,
    code          text,
    message       text,
    answer        text,
    turns         int         NOT NULL DEFAULT 0,
    tool_calls    int         NOT NULL DEFAULT 0,
    corrections   int         NOT NULL DEFAULT 0,
    input_tokens  bigint      NOT NULL DEFAULT 0,
    output_tokens bigint      NOT NULL DEFAULT 0,
    cost_micros   bigint      NOT NULL DEFAULT 0,
    -- What no provider told is estimated, and told as an estimate: unknown is not zero. A turn of a model without a price costs
    -- something unknown.
    estimated_input_tokens  bigint NOT NULL DEFAULT 0,
    estimated_output_tokens bigint NOT NULL DEFAULT 0,
    estimated_cost_micros   bigint NOT NULL DEFAULT 0,
    turns_without_price     int    NOT NULL DEFAULT 0,
    CHECK ((finished_at IS NULL) = (state IN ('waiting', 'running'))),
    CHECK ((finished_at IS NULL) = (code IS NULL)),
    CHECK (finished_at IS NULL OR wake_at IS NULL),
    CHECK (state <> 'waiting' OR (started_at IS NULL AND wake_at IS NOT NULL))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX tasks_key ON tasks (tenant, key) WHERE key IS NOT NULL;
-- Guards that one task of a conversation runs at a time: of two that start at once, one violates this index and is rolled
-- back.
CREATE UNIQUE INDEX tasks_running ON tasks (tenant, conversation) WHERE state = 'running';
-- The tasks of a conversation run in the order of their submission by the database's clock. Their ids are made by dispatchers, whose
-- clocks may differ by minutes, so an id decides only between tasks of one submission.
CREATE INDEX tasks_waiting ON tasks (tenant, conversation, submitted_at, id) WHERE state = 'waiting';
CREATE INDEX tasks_wake ON tasks (wake_at) WHERE wake_at IS NOT NULL;
-- For operators' queries. Only the primary key may contain every id: a plan that is made while the table is empty takes
-- any index that has the column, and keeps it until the next ANALYZE.
CREATE INDEX tasks_conversation ON tasks (tenant, conversation, submitted_at);
CREATE INDEX tasks_failed ON tasks (state, id) WHERE state IN ('failed', 'cancelled');
CREATE INDEX tasks_agent ON tasks (agent, id) WHERE agent IS NOT NULL;
-- Lists of a tenant, newest first, and its feed.
CREATE INDEX tasks_tenant ON tasks (tenant, id);
CREATE INDEX tasks_tenant_finished ON tasks (tenant, finished_at) WHERE finished_at IS NOT NULL;

CREATE FUNCTION refuse_change_of_ended_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'task % has ended as %: ended tasks never change', OLD.id, OLD.state
        USING ERRCODE = 'check_violation';
END
$$;

CREATE TRIGGER ended_tasks_never_change BEFORE UPDATE ON tasks FOR EACH ROW
    WHEN (OLD.finished_at IS NOT NULL) EXECUTE FUNCTION refuse_change_of_ended_task();

-- Only the transaction that advances a task deletes from here. No foreign key to tasks: its check would lock the task's
-- row. Rows live for milliseconds, so the table is vacuumed by their number, not by a share of an empty table.
CREATE TABLE task_inbox (
    id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id uuid        NOT NULL,
    kind    text        NOT NULL CHECK (kind IN ('start', 'cancel', 'ended', 'retrying')),
    call_id uuid,
    attempt int,
    class   text,
    message text,
    next_at timestamptz,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((call_id IS NOT NULL) = (kind IN ('ended', 'retrying'))),
    CHECK (kind <> 'retrying' OR (attempt IS NOT NULL AND class IS NOT NULL AND next_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX task_inbox_task ON task_inbox (task_id);
-- Dispatchers read which item of the inboxes was the last one (low-water marks of looks for what is due).
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_dispatcher') THEN
        GRANT SELECT ON SEQUENCE task_inbox_id_seq TO redial_dispatcher;
    END IF;
END
$$;

CREATE TABLE task_steps (
    task_id   uuid        NOT NULL,
    n         int         NOT NULL,
    at        timestamptz NOT NULL,
    input     json        NOT NULL,
    decisions json        NOT NULL,
    PRIMARY KEY (task_id, n)
);

CREATE TABLE messages (
    tenant       text        NOT NULL,
    conversation text        NOT NULL,
    seq          int         NOT NULL CHECK (seq > 0),
    task_id      uuid        NOT NULL,
    at           timestamptz NOT NULL,
    role         text        NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    content      text        NOT NULL,
    thought      text,
    calls        json,
    call_id      text,
    tool         text,
    class        text,
    by_redial    boolean     NOT NULL DEFAULT false,
    provider     json,
    PRIMARY KEY (tenant, conversation, seq),
    CHECK ((role = 'tool') = (call_id IS NOT NULL))
);
-- Exactly one tool message per call, whatever happened.
CREATE UNIQUE INDEX messages_call ON messages (tenant, conversation, call_id) WHERE role = 'tool';
CREATE INDEX messages_task ON messages (task_id);
-- What a model turn needs of the older part of a conversation without walking through it: the last system message and the
-- user's newest one. There are few of both among the messages.
CREATE INDEX messages_spoken ON messages (tenant, conversation, role, seq) WHERE role IN ('system', 'user');

-- What a model saw is kept once: a turn refers to the messages of its conversation, and to the tools that its task offered.
CREATE TABLE turn_tools (
    task_id uuid NOT NULL,
    hash    text NOT NULL,
    tools   json NOT NULL,
    PRIMARY KEY (task_id, hash)
);

-- For operators.

CREATE VIEW task_history AS
SELECT t.id AS task,
       t.conversation,
       t.agent,
       t.model,
       t.state,
       t.code,
       t.message,
       t.input,
       t.answer,
       t.turns,
       t.tool_calls,
       t.corrections,
       t.input_tokens,
       t.output_tokens,
       CASE
           WHEN t.cost_micros > 0 OR (t.turns > 0 AND t.turns_without_price = 0) THEN round(t.cost_micros / 1000000.0, 6)
       END AS cost_usd,
       t.submitted_at,
       t.started_at,
       t.finished_at,
       round(extract(epoch FROM (t.finished_at - t.submitted_at)) * 1000)::bigint AS total_ms,
       t.last_step AS steps,
       t.language,
       t.tenant,
       t.key,
       t.estimated_input_tokens,
       t.estimated_output_tokens,
       round(t.estimated_cost_micros / 1000000.0, 6) AS estimated_cost_usd,
       t.turns_without_price
FROM tasks t;

CREATE VIEW message_history AS
SELECT m.conversation, m.seq, m.role, m.content, m.thought, m.calls, m.call_id, m.tool, m.class, m.by_redial, m.at,
       m.task_id AS task, m.tenant
FROM messages m;

COMMENT ON TABLE tasks IS 'One row per task. Written by dispatchers only; read task_history instead.';
COMMENT ON TABLE task_inbox IS 'Events of tasks that are not decided yet. Rows stay for milliseconds.';
COMMENT ON TABLE task_steps IS 'The events of each step of a task, and what was decided: redial replay decides it again.';
COMMENT ON TABLE messages IS 'One row per message of a conversation, written once. Read message_history instead.';
COMMENT ON TABLE turn_tools IS 'The tools that models were offered in turns of a task.';
COMMENT ON COLUMN turn_tools.task_id IS 'The task.';
COMMENT ON COLUMN turn_tools.hash IS 'SHA-256 of the tools; the arguments of model turns name it.';
COMMENT ON COLUMN turn_tools.tools IS 'The tools, as they were offered.';
COMMENT ON COLUMN tasks.spec IS 'The whole agent as it was when the task was accepted.';
COMMENT ON COLUMN tasks.progress IS 'The state machine of the task, as of its last step; empty until it starts.';
COMMENT ON COLUMN tasks.last_step IS 'Number of its last step; steps count from 1.';
COMMENT ON COLUMN tasks.wake_at IS 'When a dispatcher must look at the task even if no event arrives.';

COMMENT ON VIEW task_history IS 'Every task with its answer. Newest first: ORDER BY task DESC.';
COMMENT ON COLUMN task_history.task IS 'Id; version 7 UUID, so it sorts by submission.';
COMMENT ON COLUMN task_history.conversation IS 'The conversation that it continues or began.';
COMMENT ON COLUMN task_history.agent IS 'Name of the agent; empty if it was given with the task.';
COMMENT ON COLUMN task_history.model IS 'The agent''s model.';
COMMENT ON COLUMN task_history.state IS 'waiting, running; or ended: succeeded, failed, cancelled.';
COMMENT ON COLUMN task_history.code IS 'Why it ended.';
COMMENT ON COLUMN task_history.message IS 'The reason in words, unless it succeeded.';
COMMENT ON COLUMN task_history.input IS 'The user''s request.';
COMMENT ON COLUMN task_history.answer IS 'The model''s final answer.';
COMMENT ON COLUMN task_history.turns IS 'Model turns.';
COMMENT ON COLUMN task_history.tool_calls IS 'Tool calls that were run.';
COMMENT ON COLUMN task_history.corrections IS 'Corrections that the model made.';
COMMENT ON COLUMN task_history.input_tokens IS 'Tokens that models read, the estimated ones included.';
COMMENT ON COLUMN task_history.output_tokens IS 'Tokens that models wrote, the estimated ones included.';
COMMENT ON COLUMN task_history.cost_usd IS 'Price of all turns in US dollars, of the models that have a price; empty if it is unknown.';
COMMENT ON COLUMN task_history.submitted_at IS 'When the submission was committed, by the database''s clock.';
COMMENT ON COLUMN task_history.started_at IS 'When work on it began; until then an older task of its conversation was open.';
COMMENT ON COLUMN task_history.finished_at IS 'When its end was committed, by the database''s clock.';
COMMENT ON COLUMN task_history.total_ms IS 'From submission to end, in milliseconds.';
COMMENT ON COLUMN task_history.steps IS 'Steps taken so far: rows of task_steps.';
COMMENT ON COLUMN task_history.language IS 'Language of Redial''s texts to the model: en, zh.';
COMMENT ON COLUMN task_history.tenant IS 'Scope of the conversation and of the idempotency key.';
COMMENT ON COLUMN task_history.key IS 'Idempotency key of the submission.';
COMMENT ON COLUMN task_history.estimated_input_tokens IS 'The part of input_tokens that no provider told.';
COMMENT ON COLUMN task_history.estimated_output_tokens IS 'The part of output_tokens that no provider told.';
COMMENT ON COLUMN task_history.estimated_cost_usd IS 'The part of cost_usd that was computed from estimated tokens.';
COMMENT ON COLUMN task_history.turns_without_price IS 'Turns of models without a price: what they cost is unknown, and not in cost_usd.';

COMMENT ON VIEW message_history IS 'Every message. A conversation in order: WHERE conversation = … ORDER BY seq.';
COMMENT ON COLUMN message_history.conversation IS 'The conversation.';
COMMENT ON COLUMN message_history.seq IS 'Sequence number in the conversation, from 1; without gaps while no task of it runs.';
COMMENT ON COLUMN message_history.role IS 'system, user, assistant or tool.';
COMMENT ON COLUMN message_history.content IS 'The text. For a tool: its result as JSON text, or the feedback.';
COMMENT ON COLUMN message_history.thought IS 'The model''s reasoning, if it sent any.';
COMMENT ON COLUMN message_history.calls IS 'The calls that an assistant message asks for, in order.';
COMMENT ON COLUMN message_history.call_id IS 'For a tool message: the call that it answers.';
COMMENT ON COLUMN message_history.tool IS 'For a tool message: the tool.';
COMMENT ON COLUMN message_history.class IS 'For a tool message: error class of a failed call; empty for a result.';
COMMENT ON COLUMN message_history.by_redial IS 'True for a user message that Redial wrote.';
COMMENT ON COLUMN message_history.at IS 'When it was written, by the database''s clock.';
COMMENT ON COLUMN message_history.task IS 'The task that it belongs to.';
COMMENT ON COLUMN message_history.tenant IS 'Scope of the conversation.';
