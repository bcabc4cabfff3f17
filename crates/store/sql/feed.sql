-- Takes the first calls of one part of the backlog, and marks their jobs as published: to be published after the
-- commit. The pool may have changed since the call was submitted. An unclaimed job is checked after $7 ms; the wait doubles
-- with each publication beyond one for each attempt, up to $8. Retries that an outage held back, which ended at $9, have at
-- least $10 ms from now on, if their deadline was not over before it ended.
WITH next AS MATERIALIZED (
    SELECT id, backlog_at,
        CASE WHEN backlog_at <= $9::timestamptz AND deadline_at >= $9::timestamptz
            THEN GREATEST(deadline_at, clock_timestamp() + $10::bigint * interval '1 ms')
            ELSE deadline_at END AS deadline_at
    FROM calls
    WHERE tool = $1 AND backlog_retry = $2 AND tenant COLLATE "C" = $11 AND backlog_at >= COALESCE($3, '-infinity'::timestamptz) AND state = 'ready'
    ORDER BY backlog_at, id
    LIMIT $4
    FOR UPDATE SKIP LOCKED
)
UPDATE calls c
SET backlog_at = NULL,
    pool = $5,
    consumer = $6,
    published_at = t.now,
    publish_no = c.publish_no + 1,
    deadline_at = next.deadline_at,
    wake_at = LEAST(
        next.deadline_at,
        t.now + LEAST($8::bigint, $7::bigint << LEAST(GREATEST(c.publish_no - c.attempt, 0), 16)) * interval '1 ms')
FROM next, (SELECT clock_timestamp() AS now) t
WHERE c.id = ANY (ARRAY[next.id])
RETURNING
    c.id, c.attempt, c.publish_no, c.traceparent, CASE WHEN c.pool = 'models' THEN COALESCE((c.arguments ->> 'bytes')::int, octet_length(c.arguments::text))
        ELSE octet_length(c.arguments::text) END AS "bytes!", next.backlog_at AS "backlog_at!"
