-- The retry tokens that are left.
INSERT INTO retry_budgets (tool, tokens)
SELECT * FROM UNNEST($1::text[], $2::double precision[])
ON CONFLICT (tool) DO UPDATE SET tokens = EXCLUDED.tokens, updated_at = clock_timestamp()
