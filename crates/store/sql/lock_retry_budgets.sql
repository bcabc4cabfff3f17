-- Locks the retry budgets of tools: in the order of their names, and after the calls, in every transaction.
SELECT tool, tokens, extract(epoch FROM clock_timestamp() - updated_at)::double precision AS "seconds!"
FROM retry_budgets
WHERE tool = ANY ($1)
ORDER BY tool
FOR UPDATE
