-- About how many bytes the record of a task holds: its calls with their results, its steps, and the conversation up to its
-- last message.
SELECT (
    COALESCE((
        SELECT sum(octet_length(c.arguments::text) + COALESCE((
            SELECT sum(octet_length(a.output::text)) FROM attempts a WHERE a.call_id = c.id AND a.output IS NOT NULL), 0))
        FROM calls_of_tasks c WHERE c.task_id = $1), 0)
    + COALESCE((
        SELECT sum(octet_length(m.content) + COALESCE(octet_length(m.thought), 0) + COALESCE(octet_length(m.calls::text), 0))
        FROM messages m JOIN tasks t ON t.tenant = m.tenant AND t.conversation = m.conversation
        WHERE t.id = $1 AND m.seq <= (
            SELECT max(o.seq) FROM messages o
            WHERE o.tenant = t.tenant AND o.conversation = t.conversation AND o.task_id = t.id)), 0)
    + COALESCE((
        SELECT sum(octet_length(s.input::text) + octet_length(s.decisions::text)) FROM task_steps s WHERE s.task_id = $1), 0)
    )::bigint AS "bytes!"
