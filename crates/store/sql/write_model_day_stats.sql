-- Adds to sums of a day.
INSERT INTO model_day_stats AS s (
    day, tenant, agent, model, tool, calls, right_at_once, repaired, wrong, corrected_1, corrected_2, corrected_3, answers,
    input_tokens, output_tokens, cost_micros, tokens_unknown, cost_unknown)
SELECT * FROM UNNEST(
    $1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[],
    $18::bigint[])
ON CONFLICT (day, tenant, agent, model, tool) DO UPDATE
SET calls = s.calls + EXCLUDED.calls,
    right_at_once = s.right_at_once + EXCLUDED.right_at_once,
    repaired = s.repaired + EXCLUDED.repaired,
    wrong = s.wrong + EXCLUDED.wrong,
    corrected_1 = s.corrected_1 + EXCLUDED.corrected_1,
    corrected_2 = s.corrected_2 + EXCLUDED.corrected_2,
    corrected_3 = s.corrected_3 + EXCLUDED.corrected_3,
    answers = s.answers + EXCLUDED.answers,
    input_tokens = s.input_tokens + EXCLUDED.input_tokens,
    output_tokens = s.output_tokens + EXCLUDED.output_tokens,
    cost_micros = s.cost_micros + EXCLUDED.cost_micros,
    tokens_unknown = s.tokens_unknown + EXCLUDED.tokens_unknown,
    cost_unknown = s.cost_unknown + EXCLUDED.cost_unknown
