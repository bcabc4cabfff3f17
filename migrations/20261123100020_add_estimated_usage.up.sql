-- What no provider told is estimated, and told as an estimate: unknown is not zero. A turn of a model without a price costs
-- something unknown. Constant defaults: no row is rewritten.
ALTER TABLE tasks
    ADD COLUMN estimated_input_tokens  bigint NOT NULL DEFAULT 0,
    ADD COLUMN estimated_output_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN estimated_cost_micros   bigint NOT NULL DEFAULT 0,
    ADD COLUMN turns_without_price     int    NOT NULL DEFAULT 0;

-- New columns stand last: a view cannot be replaced otherwise.
CREATE OR REPLACE VIEW task_history AS
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

COMMENT ON COLUMN task_history.input_tokens IS 'Tokens that models read, the estimated ones included.';
COMMENT ON COLUMN task_history.output_tokens IS 'Tokens that models wrote, the estimated ones included.';
COMMENT ON COLUMN task_history.cost_usd IS 'Price of all turns in US dollars, of the models that have a price; empty if it is unknown.';
COMMENT ON COLUMN task_history.estimated_input_tokens IS 'The part of input_tokens that no provider told.';
COMMENT ON COLUMN task_history.estimated_output_tokens IS 'The part of output_tokens that no provider told.';
COMMENT ON COLUMN task_history.estimated_cost_usd IS 'The part of cost_usd that was computed from estimated tokens.';
COMMENT ON COLUMN task_history.turns_without_price IS 'Turns of models without a price: what they cost is unknown, and not in cost_usd.';
