-- A page of the calls of a task with their attempts, oldest first within each call, without results. The arguments of model turns are
-- whole conversations, and are left out; those of tools up to $5 bytes. The calls are taken first, and each looked up: a plan that joins
-- the history of all calls takes seconds.
WITH page AS MATERIALIZED (
    SELECT c.* FROM task_calls o
    JOIN calls c ON c.id = o.call_id
    WHERE o.task_id = $1 AND c.tenant = $2 AND (o.turn, o.call_index) > ($3, $4)
    ORDER BY o.turn, o.call_index
    LIMIT $6)
SELECT
    c.id AS "call!", c.turn AS "turn!", c.call_index AS "call_index!", c.tool AS "tool!", h.state AS "state!", c.class, c.message,
    c.pool AS "pool!", c.effect AS "effect!", c.submitted_at AS "submitted_at!", c.finished_at, h.next_attempt_at,
    c.deadline_at AS "deadline_at!", c.lease_until, c.attempt AS "attempts!",
    CASE WHEN c.call_index > 0 THEN octet_length(c.arguments::text) END AS arguments_bytes,
    CASE WHEN c.call_index > 0 AND octet_length(c.arguments::text) <= $5 THEN c.arguments::text END AS arguments,
    CASE WHEN octet_length(c.repairs::text) <= 65536 THEN c.repairs::text END AS repairs,
    CASE WHEN octet_length(c.details::text) <= 65536 THEN c.details::text END AS details,
    CASE WHEN octet_length(c.undeclared::text) <= 65536 THEN c.undeclared::text END AS undeclared,
    c.redrive_of, (SELECT r.redriven_as FROM redriven_calls r WHERE r.call_id = c.id) AS redriven_as,
    COALESCE((
        SELECT json_agg(json_build_object(
            'attempt', a.attempt, 'worker', a.worker, 'started_at', a.started_at, 'ended_at', a.ended_at,
            'duration_ms', a.duration_ms, 'class', a.class, 'message', left(a.message, 500), 'retry_at', a.retry_at)
            ORDER BY a.attempt)
        FROM (
            SELECT * FROM attempt_history b WHERE b.call = c.id ORDER BY b.attempt DESC LIMIT 20) a)::text, '[]') AS "attempts_made!"
FROM page c
CROSS JOIN LATERAL (SELECT s.state, s.next_attempt_at FROM call_history s WHERE s.call = c.id LIMIT 1) h
ORDER BY c.turn, c.call_index
