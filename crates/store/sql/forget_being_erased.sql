-- The calls among these that are about to be erased.
SELECT c.id
FROM calls c
WHERE c.id = ANY ($1) AND (
    SELECT s.id FROM tombstones s
    WHERE s.tenant = c.tenant AND s.erased_at IS NULL AND (s.conversation IS NULL OR s.conversation = c.conversation)
    LIMIT 1
) IS NOT NULL
