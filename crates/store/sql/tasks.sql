-- The newest tasks that match a filter. A conversation goes with its tenant, as in its index.
SELECT
    id, tenant, conversation, agent, model, input, state, code, message, answer, turns, tool_calls, corrections,
    input_tokens, output_tokens, cost_micros, estimated_input_tokens, estimated_output_tokens, estimated_cost_micros,
    turns_without_price, submitted_at, submitted_by, started_at, finished_at, metadata::text AS metadata
FROM tasks
WHERE ($1::text IS NULL OR state = $1)
    AND ($2::text IS NULL OR conversation = $2)
    AND ($3::text IS NULL OR tenant = $3)
    AND ($4::text IS NULL OR agent = $4)
    AND ($5::timestamptz IS NULL OR submitted_at >= $5)
    AND ($6::uuid IS NULL OR id >= $6)
    AND ($7::uuid IS NULL OR id < $7)
    AND ($9::timestamptz IS NULL OR submitted_at < $9)
    AND ($10::uuid IS NULL OR id < $10)
ORDER BY id DESC
LIMIT $8
