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

COMMENT ON TABLE model_day_stats IS 'Tool calls and turns of models in tasks, by the day (UTC) in which they ended: sums of model_stats.';

ALTER TABLE stats_progress ADD COLUMN days_until timestamptz;
COMMENT ON COLUMN stats_progress.days_until IS 'Days that end then or earlier are in model_day_stats; null: none yet.';
