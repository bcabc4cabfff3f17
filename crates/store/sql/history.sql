-- The newest calls that match a filter. The two lines on ended_as and wake_at repeat what a state implies, so that
-- its index can be used.
SELECT
    c.id AS "call!", c.submitted_at AS "submitted_at!",
    round(extract(epoch FROM (c.finished_at - c.submitted_at)) * 1000)::bigint AS total_ms
FROM calls c
WHERE ($1::text IS NULL OR c.tool = $1)
    AND ($2::text IS NULL OR c.state = $2)
    AND ($2::text IS NULL OR $2 NOT IN ('failed', 'unknown', 'cancelled', 'refused') OR c.ended_as = $2)
    AND ($2::text IS NULL OR $2 NOT IN ('ready', 'running', 'retry_wait', 'client_wait') OR c.wake_at IS NOT NULL)
    AND ($3::text IS NULL OR c.class = $3)
    AND ($4::timestamptz IS NULL OR c.submitted_at >= $4)
    AND ($5::uuid IS NULL OR c.id >= $5)
    AND ($6::text IS NULL OR c.conversation = $6)
    AND ($7::text IS NULL OR c.id = ANY (ARRAY(
        SELECT k.call_id FROM call_keys k WHERE k.tenant = $10 AND k.key = $7)))
    AND ($10::text IS NULL OR c.tenant = $10)
    AND ($8::uuid IS NULL OR c.id < $8)
    AND ($11::uuid IS NULL OR c.id = ANY (ARRAY(SELECT o.call_id FROM task_calls o WHERE o.task_id = $11)))
    AND ($12::timestamptz IS NULL OR c.submitted_at < $12)
    AND ($13::uuid IS NULL OR c.id < $13)
    AND ($14::uuid[] IS NULL OR c.id = ANY ($14))
ORDER BY c.id DESC
LIMIT $9
