-- The health of the tools that fail or recover.
SELECT
    tool, tokens, per_second, usual_rate, successes, failures, failing_since, recovering_since, stepped_at,
    learned, learned_since, updated_at
FROM retry_budgets
WHERE failing_since IS NOT NULL OR recovering_since IS NOT NULL
