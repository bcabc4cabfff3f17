-- Arguments and results of calls, newest first.
SELECT
    c.id AS "call!", c.arguments::text AS "arguments!",
    (SELECT a.output::text FROM attempts a
    WHERE a.call_id = c.id AND a.attempt = c.attempt AND c.state = 'succeeded') AS output
FROM calls c
WHERE c.id = ANY ($1)
ORDER BY c.id DESC
