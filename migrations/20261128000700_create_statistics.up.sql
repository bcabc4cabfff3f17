-- Statistics: figures of the calls that ended in each hour, for `redial stats`.
--
-- Why the tables have this shape:
-- * A background loop of the dispatchers adds ended calls to them, a few thousand at a time, in the order of their ends. One
--   transaction adds a slice and moves `rolled_until` behind it, so a slice counts exactly once whatever dies in between.
--   No transaction that accepts, claims or ends a call writes here.
-- * A slice is a range of calls_finished. The index holds ended calls only, and no column that a claim changes. Ends are
--   written in batches with one time, so most of its entries share a key.
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

-- Sums of model_stats by day, so that a look at months reads a twenty-fourth of the rows. A dispatcher adds each day once all of its
-- hours are counted; until then, and for hours at the ends of a question, the hours are read.
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

-- One row. The transaction that adds a slice locks it.
CREATE TABLE stats_progress (
    only_row     boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    rolled_until timestamptz,
    days_until   timestamptz
);
INSERT INTO stats_progress DEFAULT VALUES;

COMMENT ON TABLE call_stats IS 'Calls by the hour in which they ended. Complete as far as stats_progress says.';
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
COMMENT ON TABLE stats_progress IS 'The calls that ended before rolled_until are in call_stats and attempt_stats.';
COMMENT ON COLUMN stats_progress.days_until IS 'Days that end then or earlier are in model_day_stats; null: none yet.';
COMMENT ON TABLE model_stats IS 'Tool calls and turns of models in tasks, by the hour in which they ended.';
COMMENT ON COLUMN model_stats.agent IS 'The declared agent; empty for one that was given with its task.';
COMMENT ON COLUMN model_stats.tool IS 'Name of the tool; empty for turns.';
COMMENT ON TABLE pointer_stats IS 'Places in arguments that broke a rule or were repaired, by the hour in which the calls ended.';
COMMENT ON COLUMN pointer_stats.what IS 'error, or repair.';
COMMENT ON COLUMN pointer_stats.pointer IS 'JSON pointer; * stands for any index.';
COMMENT ON COLUMN pointer_stats.rule IS 'The broken rule, or the kind of the repair.';
COMMENT ON TABLE model_day_stats IS 'Tool calls and turns of models in tasks, by the day (UTC) in which they ended: sums of model_stats.';
