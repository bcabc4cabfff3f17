-- Replaces sums of an hour.
INSERT INTO call_stats (
    hour, tenant, tool, state, class, calls, retries, corrections, durations, answers, input_tokens, output_tokens, cost_micros,
    tokens_unknown, cost_unknown)
SELECT
    hour, tenant, tool, state, class, calls, retries, corrections, durations::int[], answers, input_tokens, output_tokens,
    cost_micros, tokens_unknown, cost_unknown
FROM UNNEST(
    $1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[]
) AS i (hour, tenant, tool, state, class, calls, retries, corrections, durations, answers, input_tokens, output_tokens,
        cost_micros, tokens_unknown, cost_unknown)
ON CONFLICT (hour, tenant, tool, state, class) DO UPDATE
SET calls = EXCLUDED.calls,
    retries = EXCLUDED.retries,
    corrections = EXCLUDED.corrections,
    durations = EXCLUDED.durations,
    answers = EXCLUDED.answers,
    input_tokens = EXCLUDED.input_tokens,
    output_tokens = EXCLUDED.output_tokens,
    cost_micros = EXCLUDED.cost_micros,
    tokens_unknown = EXCLUDED.tokens_unknown,
    cost_unknown = EXCLUDED.cost_unknown
