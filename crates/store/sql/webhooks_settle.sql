-- Deletes the events whose deliveries are no longer open: they were erased, or ended while no webhook of their tenant was active.
DELETE FROM webhook_events e
WHERE e.delivery IS NOT NULL
    AND NOT EXISTS (SELECT FROM calls c WHERE c.id = e.delivery AND c.finished_at IS NULL)
