-- Puts unclaimed calls back into the backlog whose job was published in this time, or to this consumer: those jobs are
-- lost, or nobody takes them. Only calls that the sweeper checks soon have a published job, so the others, however many
-- wait, are not visited.
WITH lost AS MATERIALIZED (
    SELECT id FROM calls
    WHERE wake_at <= (SELECT clock_timestamp() + $4::bigint * interval '1 ms') AND state = 'ready' AND num_nonnulls(backlog_at) = 0
        AND published_at > $1 AND published_at <= $2 AND ($3::text IS NULL OR consumer = $3)
    LIMIT $5
    FOR UPDATE SKIP LOCKED
)
UPDATE calls c
SET backlog_at = c.submitted_at, backlog_retry = false, wake_at = c.deadline_at
FROM lost
WHERE c.id = ANY (ARRAY[lost.id])
