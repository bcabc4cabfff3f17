-- Marks the events whose deliveries are no longer open and whose ends nobody found: they were erased, or ended while no
-- webhook was active.
UPDATE webhook_events e
SET ended = true
WHERE e.delivery IS NOT NULL AND NOT e.ended
    AND NOT EXISTS (SELECT FROM calls c WHERE c.id = e.delivery AND c.finished_at IS NULL)
