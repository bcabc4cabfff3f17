-- Puts calls whose jobs could not be published back into the backlog.
UPDATE calls c
SET backlog_at = c.submitted_at, backlog_retry = false, wake_at = c.deadline_at
FROM UNNEST((SELECT $1::uuid[]), $2::int[]) AS i (id, publish_no)
WHERE c.id = ANY (ARRAY[i.id]) AND c.state = 'ready' AND c.backlog_at IS NULL AND c.publish_no = i.publish_no
