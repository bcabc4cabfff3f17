-- Calls as lines of the history, newest first.
SELECT
    c.id AS "call!", c.tool AS "tool!", c.state AS "state!", c.class, c.message, c.attempt AS "attempts!",
    c.submitted_at AS "submitted_at!", c.finished_at,
    round(extract(epoch FROM (c.finished_at - c.submitted_at)) * 1000)::bigint AS total_ms,
    CASE WHEN c.state = 'retry_wait' THEN c.wake_at END AS next_attempt_at,
    c.conversation, c.key, c.worker AS last_worker,
    (SELECT r.redriven_as FROM redriven_calls r WHERE r.call_id = c.id) AS redriven_as
FROM calls c
WHERE c.id = ANY ($1)
ORDER BY c.id DESC
