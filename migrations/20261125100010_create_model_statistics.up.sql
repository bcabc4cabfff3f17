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

COMMENT ON TABLE model_stats IS 'Tool calls and turns of models in tasks, by the hour in which they ended.';
COMMENT ON COLUMN model_stats.agent IS 'The declared agent; empty for one that was given with its task.';
COMMENT ON COLUMN model_stats.tool IS 'Name of the tool; empty for turns.';
COMMENT ON TABLE pointer_stats IS 'Places in arguments that broke a rule or were repaired, by the hour in which the calls ended.';
COMMENT ON COLUMN pointer_stats.what IS 'error, or repair.';
COMMENT ON COLUMN pointer_stats.pointer IS 'JSON pointer; * stands for any index.';
COMMENT ON COLUMN pointer_stats.rule IS 'The broken rule, or the kind of the repair.';

-- Hours that were rolled up before have no such sums; what was counted from here on has.
ALTER TABLE stats_progress ADD COLUMN models_since timestamptz;
UPDATE stats_progress SET models_since = rolled_until;
COMMENT ON COLUMN stats_progress.models_since IS 'Sums of models and of places begin here; null: with the first call.';
