-- The calls among these that are about to be erased, or that cannot be told from those: only a bare call that was submitted after
-- the time of the erasure surely stays.
SELECT c.id
FROM calls c
WHERE c.id = ANY ($1) AND (
    SELECT s.id FROM tombstones s
    WHERE s.tenant = c.tenant AND s.erased_at IS NULL AND (s.conversation IS NULL OR s.conversation = c.conversation)
        AND NOT COALESCE(c.submitted_at > s.until_at AND c.redrive_of IS NULL AND c.task_id IS NULL, false)
    LIMIT 1
) IS NOT NULL
