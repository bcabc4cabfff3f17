-- The items of inboxes, in order, with what is on record of the calls that they name; and the time, also without items. OFFSET 0
-- makes each lookup one through its index: a join that was planned while the tables were empty would walk all calls.
SELECT
    t.now AS "now!", i.id AS "id?", i.task_id AS "task?", i.kind AS "kind?", i.call_id AS "call?",
    i.attempt AS "attempt?", i.class AS "attempt_class?", i.message AS "attempt_message?", i.next_at AS "next_at?",
    c.turn AS "turn?", c.call_index AS "call_index?", c.tool AS "tool?", c.state AS "state?", c.class AS "class?",
    c.message AS "message?",
    COALESCE(c.details, CASE WHEN a.class = c.class THEN a.details END)::text AS details,
    CASE WHEN c.state = 'succeeded' THEN a.output::text END AS output,
    CASE WHEN i.kind = 'ended' AND c.call_index = 0 THEN c.arguments::text END AS arguments
FROM (SELECT clock_timestamp() AS now) t
LEFT JOIN LATERAL (
    SELECT found.*
    FROM UNNEST($1::uuid[]) AS u (id)
    CROSS JOIN LATERAL (SELECT * FROM task_inbox WHERE task_id = u.id OFFSET 0) found
) i ON true
LEFT JOIN LATERAL (SELECT * FROM calls WHERE id = i.call_id OFFSET 0) c ON true
LEFT JOIN LATERAL (
    SELECT * FROM attempts WHERE call_id = c.id AND attempt = c.attempt AND i.kind = 'ended' OFFSET 0
) a ON true
ORDER BY i.id
