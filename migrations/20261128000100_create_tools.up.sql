-- Tools, the workers that serve them, and what is known of the tools' health.
--
-- Why the tables have this shape:
-- * The first worker identity that registers a tool may serve it; any other one waits until an operator accepts it. How many tools an
--   identity serves, and how many of it wait, is bounded, so both are found by their identity.
-- * The workers of a pool that have the same tools share a consumer on the job stream. The first one of a pool is named like the pool.
-- * A worker is live while a heartbeat of it is younger than the lease of the dispatcher that took it.

CREATE TABLE tools (
    name           text        PRIMARY KEY,
    spec           json        NOT NULL,
    registered_by  text        NOT NULL,
    registered_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- When a worker that had the tool was last seen, as far as that worker is not in `workers` any more.
    last_served_at timestamptz
);

CREATE TABLE tool_identities (
    tool          text        NOT NULL,
    identity      text        NOT NULL,
    accepted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The specification that an operator accepted last from this identity; NULL: none. It is never asked about again.
    accepted_spec json,
    PRIMARY KEY (tool, identity)
);
CREATE INDEX tool_identities_identity ON tool_identities (identity);

CREATE TABLE pending_tools (
    tool     text        NOT NULL,
    identity text        NOT NULL,
    spec     json        NOT NULL,
    reasons  text[]      NOT NULL,
    worker   text        NOT NULL,
    since    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tool, identity)
);
-- The oldest go once there are too many.
CREATE INDEX pending_tools_since ON pending_tools (since);
CREATE INDEX pending_tools_identity ON pending_tools (identity);

CREATE TABLE consumers (
    name  text   PRIMARY KEY,
    pool  text   NOT NULL,
    tools text[] NOT NULL
);
-- By hash, because the names of all tools may be longer than an entry of a B-tree. A lock on the table keeps sets apart.
CREATE INDEX consumers_tools ON consumers USING hash (tools);

CREATE TABLE workers (
    id           text        PRIMARY KEY,
    version      text        NOT NULL,
    -- Where it runs, as it says: its id starts with its identity, which workers on many hosts share.
    host         text,
    -- The tools that it serves.
    tools        text[]      NOT NULL,
    -- Tools that it has and may not serve yet.
    waiting      text[]      NOT NULL DEFAULT '{}',
    consumers    text[]      NOT NULL DEFAULT '{}',
    -- The slots that it has in the pool of each consumer.
    pool_slots   int[]       NOT NULL DEFAULT '{}',
    started_at   timestamptz NOT NULL,
    slots        int         NOT NULL,
    running      int         NOT NULL DEFAULT 0,
    draining     boolean     NOT NULL DEFAULT false,
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    live_until   timestamptz NOT NULL DEFAULT '-infinity'
);
-- What precedes the last `-` of a worker's id is its identity.
CREATE INDEX workers_identity ON workers (regexp_replace(id, '-[^-]*$', ''));

-- What is known of a tool's health; `tokens` is the retry budget.
CREATE TABLE retry_budgets (
    tool             text             PRIMARY KEY,
    tokens           double precision NOT NULL,
    updated_at       timestamptz      NOT NULL DEFAULT clock_timestamp(),
    per_second       double precision NOT NULL DEFAULT 1,
    usual_rate       double precision NOT NULL DEFAULT 0,
    successes        double precision NOT NULL DEFAULT 0,
    failures         double precision NOT NULL DEFAULT 0,
    stepped_at       timestamptz      NOT NULL DEFAULT now(),
    learned          double precision NOT NULL DEFAULT 0,
    learned_since    timestamptz      NOT NULL DEFAULT now(),
    failing_since    timestamptz,
    recovering_since timestamptz
);

COMMENT ON TABLE tools IS 'The registry: every tool that a worker has ever registered, as of its last registration.';
COMMENT ON TABLE tool_identities IS 'The worker identities that may serve each tool.';
COMMENT ON TABLE pending_tools IS 'What worker identities registered, and what waits for redial tools accept.';
COMMENT ON TABLE consumers IS 'Sets of tools that workers of a pool have in common; each has a consumer on the job stream.';
COMMENT ON TABLE workers IS 'Workers as of their last heartbeat.';
COMMENT ON TABLE retry_budgets IS 'Retry tokens and health per tool: a success earns 0.1, a retry costs 1, at most 100 unless the tool recovers.';
COMMENT ON COLUMN retry_budgets.per_second IS 'Retry tokens earned per second: 1, more while the tool recovers.';
COMMENT ON COLUMN retry_budgets.usual_rate IS 'Successes per second while the tool does not fail.';
COMMENT ON COLUMN retry_budgets.successes IS 'Successes since stepped_at, of all dispatchers.';
COMMENT ON COLUMN retry_budgets.failures IS 'Failures since stepped_at, of all dispatchers.';
COMMENT ON COLUMN retry_budgets.stepped_at IS 'When per_second, failing_since and recovering_since were last decided.';
COMMENT ON COLUMN retry_budgets.learned IS 'Successes since learned_since.';
COMMENT ON COLUMN retry_budgets.learned_since IS 'Since when successes are counted for usual_rate.';
COMMENT ON COLUMN retry_budgets.failing_since IS 'The first failure since its last success; empty while it succeeds.';
COMMENT ON COLUMN retry_budgets.recovering_since IS 'When it succeeded again after an outage, for ten minutes at least and until no retry waits.';
