-- What came in for tasks, in order, with what stands in the calls that it names; and the time, with or without.
SELECT
    t.now AS "now!", i.id AS "id?", i.task_id AS "task?", i.kind AS "kind?", i.call_id AS "call?",
    i.attempt AS "attempt?", i.class AS "attempt_class?", i.message AS "attempt_message?", i.next_at AS "next_at?",
    c.turn AS "turn?", c.slot AS "slot?", c.tool AS "tool?", c.state AS "state?", c.class AS "class?",
    c.message AS "message?",
    COALESCE(c.details, CASE WHEN a.class = c.class THEN a.details END)::text AS details,
    CASE WHEN c.state = 'succeeded' THEN a.output::text END AS output,
    CASE WHEN i.kind = 'ended' AND c.slot = 0 THEN c.arguments::text END AS arguments
FROM (SELECT clock_timestamp() AS now) t
LEFT JOIN task_inbox i ON i.task_id = ANY ($1)
LEFT JOIN calls c ON c.id = i.call_id
LEFT JOIN attempts a ON a.call_id = c.id AND a.attempt = c.attempt AND i.kind = 'ended'
ORDER BY i.id
