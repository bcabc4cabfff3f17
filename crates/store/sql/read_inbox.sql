-- The items of inboxes, in order, with what is on record of the calls that they name; and the time, also without items. Outputs and
-- arguments are read in the order of the tasks in $1 and of their items, up to $3 bytes together, and the first in any case; an item
-- behind them is left, with all that follow. Of tasks that are not open ($2), nothing of that is needed. OFFSET 0
-- makes each lookup one through its index: a join that was planned while the tables were empty would walk all calls.
WITH found AS (
    SELECT
        u.n, i.id, i.task_id, i.kind, i.call_id, i.attempt, i.class AS attempt_class, i.message AS attempt_message, i.next_at,
        c.turn, c.call_index, c.tool, c.state, c.class, c.message,
        COALESCE(c.details, CASE WHEN a.class = c.class THEN a.details END) AS details,
        CASE WHEN u.is_open AND c.state = 'succeeded' THEN a.output END AS output,
        CASE WHEN u.is_open AND i.kind = 'ended' AND c.call_index = 0 THEN c.arguments END AS arguments
    FROM UNNEST((SELECT $1::uuid[]), $2::boolean[]) WITH ORDINALITY AS u (id, is_open, n)
    CROSS JOIN LATERAL (SELECT * FROM task_inbox WHERE task_id = u.id OFFSET 0) i
    LEFT JOIN LATERAL (SELECT * FROM calls WHERE id = i.call_id OFFSET 0) c ON true
    LEFT JOIN LATERAL (
        SELECT * FROM attempts WHERE call_id = c.id AND attempt = c.attempt AND i.kind = 'ended' OFFSET 0
    ) a ON true
), sized AS (
    SELECT *, COALESCE(octet_length(output::text), 0)::bigint + COALESCE(octet_length(arguments::text), 0) AS bytes FROM found
), summed AS (
    SELECT *, sum(bytes) OVER (ORDER BY n, id) AS total FROM sized
), chosen AS (
    SELECT *, total > $3::bigint AND total > bytes AS is_left FROM summed
)
SELECT
    t.now AS "now!", i.id AS "id?", i.task_id AS "task?", i.kind AS "kind?", i.call_id AS "call?",
    i.attempt AS "attempt?", i.attempt_class AS "attempt_class?", i.attempt_message AS "attempt_message?", i.next_at AS "next_at?",
    i.turn AS "turn?", i.call_index AS "call_index?", i.tool AS "tool?", i.state AS "state?", i.class AS "class?",
    i.message AS "message?", i.details::text AS details,
    CASE WHEN NOT i.is_left THEN i.output::text END AS output,
    CASE WHEN NOT i.is_left THEN i.arguments::text END AS arguments,
    i.is_left AS "is_left?"
FROM (SELECT clock_timestamp() AS now) t
LEFT JOIN chosen i ON true
ORDER BY i.id
