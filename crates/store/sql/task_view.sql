-- Tasks, for users.
SELECT
    id, tenant, conversation, agent, model, input, state, code, message, answer, turns, tool_calls, corrections,
    input_tokens, output_tokens, cost_micros, estimated_input_tokens, estimated_output_tokens, estimated_cost_micros,
    turns_without_price, submitted_at, submitted_by, started_at, finished_at,
    metadata::text AS metadata
FROM tasks
WHERE id = ANY ($1)
