-- Lets tasks stay waiting. The end of the task before them puts a start into their inbox, so this check is only for a
-- task that was submitted while that one ended, and neither saw the other: the longer it has waited, the less likely.
UPDATE tasks
SET wake_at = t.now + LEAST(GREATEST(t.now - submitted_at, interval '1 s'), interval '30 s')
FROM (SELECT clock_timestamp() AS now) t
WHERE id = ANY ($1)
