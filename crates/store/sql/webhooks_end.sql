-- Marks the events whose deliveries ended from $1 on and before $2.
UPDATE webhook_events e
SET ended = true
FROM calls c
WHERE c.finished_at >= $1 AND c.finished_at < $2 AND c.tool = $3 AND e.delivery = c.id AND NOT e.ended
