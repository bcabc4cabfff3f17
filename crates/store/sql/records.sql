-- Calls, without their attempts.
SELECT
    h.call AS "call!", h.tool AS "tool!", h.state AS "state!", h.class, h.message, h.attempts AS "attempts!",
    h.submitted_at AS "submitted_at!", h.finished_at, h.total_ms, h.next_attempt_at, h.conversation, h.key,
    h.tenant AS "tenant!", h.pool AS "pool!", h.effect AS "effect!", h.redrive_of,
    (SELECT r.redriven_as FROM redriven_calls r WHERE r.call_id = h.call) AS redriven_as,
    c.submitted_by, c.deadline_at, c.cancel_requested, c.publish_no,
    h.arguments::text AS "arguments!", h.details::text AS details,
    h.last_worker, h.repairs::text AS repairs, c.undeclared::text AS undeclared, c.help::text AS help,
    h.task, h.turn, h.call_index, h.waits_for, h.waits_since,
    (SELECT l.call_id FROM late_reports l WHERE l.call_id = h.call LIMIT 1) IS NOT NULL AS "late!"
FROM call_history h
JOIN calls c ON c.id = h.call
WHERE h.call = ANY ($1)
