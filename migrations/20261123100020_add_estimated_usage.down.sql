DROP VIEW task_history;
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
       round(t.cost_micros / 1000000.0, 6) AS cost_usd,
       t.submitted_at,
       t.started_at,
       t.finished_at,
       round(extract(epoch FROM (t.finished_at - t.submitted_at)) * 1000)::bigint AS total_ms,
       t.last_step AS steps,
       t.language,
       t.tenant,
       t.key
FROM tasks t;

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
COMMENT ON COLUMN task_history.input_tokens IS 'Tokens that models read.';
COMMENT ON COLUMN task_history.output_tokens IS 'Tokens that models wrote.';
COMMENT ON COLUMN task_history.cost_usd IS 'Price of all turns in US dollars, for the models whose prices are known.';
COMMENT ON COLUMN task_history.submitted_at IS 'When the submission was committed, by the database''s clock.';
COMMENT ON COLUMN task_history.started_at IS 'When work on it began; until then an older task of its conversation was open.';
COMMENT ON COLUMN task_history.finished_at IS 'When its end was committed, by the database''s clock.';
COMMENT ON COLUMN task_history.total_ms IS 'From submission to end, in milliseconds.';
COMMENT ON COLUMN task_history.steps IS 'Steps taken so far: rows of task_steps.';
COMMENT ON COLUMN task_history.language IS 'Language of Redial''s texts to the model: en, zh.';
COMMENT ON COLUMN task_history.tenant IS 'Scope of the conversation and of the idempotency key.';
COMMENT ON COLUMN task_history.key IS 'Idempotency key of the submission.';

ALTER TABLE tasks
    DROP COLUMN estimated_input_tokens,
    DROP COLUMN estimated_output_tokens,
    DROP COLUMN estimated_cost_micros,
    DROP COLUMN turns_without_price;
