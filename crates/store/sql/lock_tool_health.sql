-- Locks the health of tools: in the order of their names in every transaction.
SELECT
    tool, tokens, per_second, usual_rate, successes, failures, failing_since, recovering_since, stepped_at,
    learned, learned_since, updated_at
FROM retry_budgets
WHERE tool = ANY ($1)
ORDER BY tool
FOR UPDATE
