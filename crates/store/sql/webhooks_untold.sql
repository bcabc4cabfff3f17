-- What ended since then may still be needed for a webhook: it waits for its delivery, or was not looked at yet.
SELECT LEAST(
    (SELECT min(at) FROM webhook_events WHERE delivery IS NULL),
    (SELECT min(ended_at) FROM untold_ends)
) AS oldest
