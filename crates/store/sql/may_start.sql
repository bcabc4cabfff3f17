-- Waiting tasks that may start, and what earlier tasks of their conversations carry over. None may while its conversation is
-- being erased: a model would be shown what is left of it. Subqueries, not joins: each is
-- answered through its index for one conversation, whatever the statistics of a table that was empty a minute ago say
-- (measured with joins: 16 s instead of 2 ms among 200,000 tasks). The time is later than every end that this statement sees.
SELECT
    t.id AS "id!", COALESCE(last.seq, 0) + 1 AS "next_seq!", (
        SELECT m.content FROM messages m
        WHERE m.tenant = t.tenant AND m.conversation = t.conversation AND m.role = 'system'
        ORDER BY m.seq DESC LIMIT 1
    ) AS system,
    (SELECT b.progress::text FROM tasks b WHERE b.id = last.task_id) AS carried, clock_timestamp() AS "now!"
FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::timestamptz[]) AS t (id, tenant, conversation, submitted_at)
LEFT JOIN LATERAL (
    SELECT m.seq, m.task_id FROM messages m
    WHERE m.tenant = t.tenant AND m.conversation = t.conversation
    ORDER BY m.seq DESC LIMIT 1
) last ON true
WHERE (
        SELECT o.id FROM tasks o
        WHERE o.tenant = t.tenant AND o.conversation = t.conversation AND o.state = 'running' LIMIT 1
    ) IS NULL
    AND (
        SELECT o.id FROM tasks o
        WHERE o.tenant = t.tenant AND o.conversation = t.conversation AND o.state = 'waiting'
            AND (o.submitted_at, o.id) < (t.submitted_at, t.id) LIMIT 1
    ) IS NULL
    AND (
        SELECT e.id FROM tombstones e
        WHERE e.tenant = t.tenant AND e.erased_at IS NULL AND e.holds_starts
            AND (e.conversation IS NULL OR e.conversation = t.conversation) LIMIT 1
    ) IS NULL
