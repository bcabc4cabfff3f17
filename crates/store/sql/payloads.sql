-- Arguments and results of calls, newest first.
SELECT c.id AS "call!", c.arguments::text AS "arguments!", a.output::text AS output
FROM calls c
LEFT JOIN attempts a ON a.call_id = c.id AND a.attempt = c.attempt AND c.state = 'succeeded'
WHERE c.id = ANY ($1)
ORDER BY c.id DESC
