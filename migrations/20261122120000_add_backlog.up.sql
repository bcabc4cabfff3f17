-- The queue is short: NATS holds a window of jobs, and the other calls that are ready wait in the table.
--
-- Why it has this shape:
-- * A call waits if, and only if, backlog_at is set; it is also its position in the backlog of its tool. A call whose job
--   was published at once never enters the index, so below the window the backlog costs nothing.
-- * The index leads with the tool: calls of a tool that no worker has are never in the way of others.
-- * What waits is due at its deadline, perhaps a million calls at once, so due times are in two parts of their index: the
--   sweeper looks into both, and a retry that is due does not wait for them.
-- * Retries wait apart from first attempts (backlog_retry), because they also need a token of the tool's retry budget.
-- * `consumer` says where the job was last published: to the workers of one pool that have the same tools.

ALTER TABLE calls
    ALTER COLUMN published_at DROP NOT NULL,
    ADD COLUMN consumer text,
    ADD COLUMN backlog_at timestamptz,
    ADD COLUMN backlog_retry boolean NOT NULL DEFAULT false;

CREATE INDEX calls_backlog ON calls (tool, backlog_retry, backlog_at, id) WHERE backlog_at IS NOT NULL;
DROP INDEX calls_wake;
CREATE INDEX calls_wake ON calls (num_nonnulls(backlog_at), wake_at) WHERE wake_at IS NOT NULL;

-- The workers of a pool that have the same tools share a consumer. The first one of a pool is named like the pool.
CREATE TABLE consumers (
    name  text   PRIMARY KEY,
    pool  text   NOT NULL,
    tools text[] NOT NULL
);
-- By hash, because the names of all tools may be longer than an entry of a B-tree. A lock on the table keeps sets apart.
CREATE INDEX consumers_tools ON consumers USING hash (tools);

-- A worker is live while a heartbeat of it is younger than the lease of the dispatcher that took it.
ALTER TABLE workers
    ADD COLUMN consumers text[] NOT NULL DEFAULT '{}',
    ADD COLUMN live_until timestamptz NOT NULL DEFAULT '-infinity';
-- When a worker that had the tool was last seen, as far as that worker is not in `workers` any more.
ALTER TABLE tools ADD COLUMN last_served_at timestamptz;

-- What is known of a tool's health; `tokens` is the retry budget.
ALTER TABLE retry_budgets
    ADD COLUMN per_second double precision NOT NULL DEFAULT 1,
    ADD COLUMN usual_rate double precision NOT NULL DEFAULT 0,
    ADD COLUMN successes double precision NOT NULL DEFAULT 0,
    ADD COLUMN failures double precision NOT NULL DEFAULT 0,
    ADD COLUMN stepped_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN learned double precision NOT NULL DEFAULT 0,
    ADD COLUMN learned_since timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN failing_since timestamptz,
    ADD COLUMN recovering_since timestamptz;

-- One row: the job stream whose loss was dealt with last, so that one dispatcher publishes its jobs again, not each.
CREATE TABLE job_stream (
    only_row    boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    created_at  timestamptz NOT NULL,
    requeued_at timestamptz NOT NULL,
    done        boolean     NOT NULL DEFAULT false
);

CREATE OR REPLACE VIEW call_history AS
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

COMMENT ON COLUMN call_history.waits_for IS 'What a ready call waits for: queue (its job waits for a free worker), backlog (others of its tool are before it), worker (no live worker has its tool), retries (retries of its tool are held back).';
COMMENT ON COLUMN call_history.waits_since IS 'Since when a ready call waits: since its submission, or since its retry was due.';
COMMENT ON TABLE consumers IS 'Sets of tools that workers of a pool have in common; each has a consumer on the job stream.';
COMMENT ON TABLE job_stream IS 'The job stream as dispatchers last saw it, and when its jobs were last published again.';
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
