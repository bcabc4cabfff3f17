-- Statistics: figures of the calls that ended in each hour, for `redial stats`.
--
-- Why the tables have this shape:
-- * The statement that ends a call also puts it into a queue. A background loop of the dispatchers takes a few thousand calls at a time
--   from the queue and adds them to the sums of their hours in one transaction: each call counts exactly once, whatever dies in between,
--   however late its end is committed, and whatever the clock says. Nobody waits for transactions of others.
-- * `durations` counts by logarithmic buckets, so that hours can be added up: see crates/store/src/stats/histogram.rs.
-- * Sums of the current hour are replaced every 15 s; fillfactor leaves room for that on their page (HOT updates).
-- * Names in the keys come from outside, so the number of rows for an hour is limited: what is beyond counts as '(other)'.

CREATE TABLE call_stats (
    hour           timestamptz NOT NULL,
    tenant         text        NOT NULL,
    tool           text        NOT NULL,
    state          text        NOT NULL,
    class          text        NOT NULL,
    calls          bigint      NOT NULL,
    retries        bigint      NOT NULL,
    corrections    bigint      NOT NULL,
    durations      int[]       NOT NULL,
    answers        bigint      NOT NULL,
    input_tokens   bigint      NOT NULL,
    output_tokens  bigint      NOT NULL,
    cost_micros    bigint      NOT NULL,
    tokens_unknown bigint      NOT NULL,
    cost_unknown   bigint      NOT NULL,
    PRIMARY KEY (hour, tenant, tool, state, class)
) WITH (fillfactor = 70);

CREATE TABLE attempt_stats (
    hour      timestamptz NOT NULL,
    tenant    text        NOT NULL,
    worker    text        NOT NULL,
    tool      text        NOT NULL,
    attempts  bigint      NOT NULL,
    failed    bigint      NOT NULL,
    durations int[]       NOT NULL,
    PRIMARY KEY (hour, tenant, worker, tool)
) WITH (fillfactor = 70);

-- Statistics of models: how often their calls were right, what was corrected, and what they cost; and which places in arguments are
-- corrected most.
--
-- They are sums by hour like call_stats, added by the same roll-up in the same transaction, with the same limit of rows for an hour.
-- Of a chain of corrections each call counts on its own when it ends, so that no call has to be looked at twice:
-- * right_at_once, repaired, wrong: calls that correct no earlier one. Those that are right ran as they were written or after a
--   repair; those that are wrong were fed back to the model.
-- * corrected_1, 2, 3: calls that are right after so many turns of corrections; 3 stands for three or more.
-- What was given up is what was wrong and never corrected: wrong less all that was corrected.
CREATE TABLE model_stats (
    hour           timestamptz NOT NULL,
    tenant         text        NOT NULL,
    agent          text        NOT NULL,
    model          text        NOT NULL,
    tool           text        NOT NULL,
    calls          bigint      NOT NULL,
    right_at_once  bigint      NOT NULL,
    repaired       bigint      NOT NULL,
    wrong          bigint      NOT NULL,
    corrected_1    bigint      NOT NULL,
    corrected_2    bigint      NOT NULL,
    corrected_3    bigint      NOT NULL,
    answers        bigint      NOT NULL,
    input_tokens   bigint      NOT NULL,
    output_tokens  bigint      NOT NULL,
    cost_micros    bigint      NOT NULL,
    tokens_unknown bigint      NOT NULL,
    cost_unknown   bigint      NOT NULL,
    PRIMARY KEY (hour, tenant, agent, model, tool)
) WITH (fillfactor = 70);

CREATE TABLE pointer_stats (
    hour    timestamptz NOT NULL,
    tenant  text        NOT NULL,
    tool    text        NOT NULL,
    what    text        NOT NULL,
    pointer text        NOT NULL,
    rule    text        NOT NULL,
    calls   bigint      NOT NULL,
    PRIMARY KEY (hour, tenant, tool, what, pointer, rule)
) WITH (fillfactor = 70);

-- Sums of model_stats by day, so that a look at months reads a twenty-fourth of the rows. Both are added to at the same time; the hours
-- are read at the ends of a question.
CREATE TABLE model_day_stats (
    day            timestamptz NOT NULL,
    tenant         text        NOT NULL,
    agent          text        NOT NULL,
    model          text        NOT NULL,
    tool           text        NOT NULL,
    calls          bigint      NOT NULL,
    right_at_once  bigint      NOT NULL,
    repaired       bigint      NOT NULL,
    wrong          bigint      NOT NULL,
    corrected_1    bigint      NOT NULL,
    corrected_2    bigint      NOT NULL,
    corrected_3    bigint      NOT NULL,
    answers        bigint      NOT NULL,
    input_tokens   bigint      NOT NULL,
    output_tokens  bigint      NOT NULL,
    cost_micros    bigint      NOT NULL,
    tokens_unknown bigint      NOT NULL,
    cost_unknown   bigint      NOT NULL,
    PRIMARY KEY (day, tenant, agent, model, tool)
);

-- The queue. Without an index, because every call passes through it: rows are taken as they lie there. Empty pages at the end are kept:
-- to cut them off, vacuum would lock out those that end calls.
CREATE TABLE uncounted_calls (
    call_id  uuid        NOT NULL,
    ended_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = off);

COMMENT ON TABLE call_stats IS 'Calls by the hour in which they ended, but for those in uncounted_calls.';
COMMENT ON COLUMN call_stats.hour IS 'Start of the hour.';
COMMENT ON COLUMN call_stats.tool IS 'Name of the tool; model-NAME for model turns; (unknown tool), (other).';
COMMENT ON COLUMN call_stats.class IS 'Error class; empty for calls that succeeded.';
COMMENT ON COLUMN call_stats.retries IS 'Attempts beyond the first of each call.';
COMMENT ON COLUMN call_stats.corrections IS 'Calls that a model made after a call of the same tool had failed in a way that it could correct.';
COMMENT ON COLUMN call_stats.durations IS 'Calls that had an attempt, by their time from submission to end: element 1 is below 1 ms, element n + 2 begins at 2^(n/4) ms.';
COMMENT ON COLUMN call_stats.answers IS 'Model turns that succeeded.';
COMMENT ON COLUMN call_stats.input_tokens IS 'Tokens that models read, as far as their providers told it.';
COMMENT ON COLUMN call_stats.output_tokens IS 'Tokens that models wrote, as far as their providers told it.';
COMMENT ON COLUMN call_stats.cost_micros IS 'Price of model turns in millionths of a US dollar, as far as it is known.';
COMMENT ON COLUMN call_stats.tokens_unknown IS 'Answers of models of which a number of tokens is not known.';
COMMENT ON COLUMN call_stats.cost_unknown IS 'Answers of models of which the price is not known.';
COMMENT ON TABLE attempt_stats IS 'Attempts by worker, in the hour in which their calls ended.';
COMMENT ON COLUMN attempt_stats.durations IS 'Attempts by the time that the tool ran, as call_stats.durations; without those whose worker was lost.';
COMMENT ON TABLE uncounted_calls IS 'Calls that have ended and are not in the statistics yet.';
COMMENT ON TABLE model_stats IS 'Tool calls and turns of models in tasks, by the hour in which they ended.';
COMMENT ON COLUMN model_stats.agent IS 'The declared agent; empty for one that was given with its task.';
COMMENT ON COLUMN model_stats.tool IS 'Name of the tool; empty for turns.';
COMMENT ON TABLE pointer_stats IS 'Places in arguments that broke a rule or were repaired, by the hour in which the calls ended.';
COMMENT ON COLUMN pointer_stats.what IS 'error, or repair.';
COMMENT ON COLUMN pointer_stats.pointer IS 'JSON pointer; * stands for any index.';
COMMENT ON COLUMN pointer_stats.rule IS 'The broken rule, or the kind of the repair.';
COMMENT ON TABLE model_day_stats IS 'Tool calls and turns of models in tasks, by the day (UTC) in which they ended: sums of model_stats.';
