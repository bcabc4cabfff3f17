-- Calls that have ended, without their attempts: what records.sql says of them. Dispatchers ask for it at each end that somebody
-- waits for, so the planner does not see the ids.
SELECT
    c.id AS "call!", c.tool AS "tool!", c.state AS "state!", c.class, c.message, c.attempt AS "attempts!",
    c.submitted_at AS "submitted_at!", c.finished_at,
    round(extract(epoch FROM (c.finished_at - c.submitted_at)) * 1000)::bigint AS total_ms,
    NULL::timestamptz AS next_attempt_at, c.conversation, c.key,
    c.tenant AS "tenant!", c.pool AS "pool!", c.effect AS "effect!", c.redrive_of,
    (SELECT r.redriven_as FROM redriven_calls r WHERE r.call_id = c.id) AS redriven_as,
    c.submitted_by, c.deadline_at, c.cancel_requested, c.publish_no,
    c.arguments::text AS "arguments!", c.details::text AS details,
    c.worker AS last_worker, c.repairs::text AS repairs, c.undeclared::text AS undeclared, c.help::text AS help,
    c.task_id AS task, c.turn, c.call_index, NULL AS waits_for, NULL::timestamptz AS waits_since,
    (SELECT l.call_id FROM late_reports l WHERE l.call_id = c.id LIMIT 1) IS NOT NULL AS "late!"
FROM UNNEST((SELECT $1::uuid[])) AS i (id)
JOIN calls c ON c.id = ANY (ARRAY[i.id])
WHERE c.finished_at IS NOT NULL
