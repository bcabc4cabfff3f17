-- The health of tools.
INSERT INTO retry_budgets (
    tool, tokens, per_second, usual_rate, successes, failures, failing_since, recovering_since, stepped_at, learned,
    learned_since, updated_at)
SELECT * FROM UNNEST(
    $1::text[], $2::double precision[], $3::double precision[], $4::double precision[], $5::double precision[],
    $6::double precision[], $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::double precision[],
    $11::timestamptz[], $12::timestamptz[])
ON CONFLICT (tool) DO UPDATE
SET tokens = EXCLUDED.tokens,
    per_second = EXCLUDED.per_second,
    usual_rate = EXCLUDED.usual_rate,
    successes = EXCLUDED.successes,
    failures = EXCLUDED.failures,
    failing_since = EXCLUDED.failing_since,
    recovering_since = EXCLUDED.recovering_since,
    stepped_at = EXCLUDED.stepped_at,
    learned = EXCLUDED.learned,
    learned_since = EXCLUDED.learned_since,
    updated_at = EXCLUDED.updated_at
