-- Deletes up to $3 tombstones of erasures that found nothing, and that ended before $2. Only those that ended after $1 are looked at:
-- there may be many older ones that say something.
DELETE FROM tombstones
WHERE id = ANY (ARRAY(
    SELECT id FROM tombstones
    WHERE erased_at > $1 AND erased_at < $2 AND counts IS NULL
    ORDER BY erased_at
    LIMIT $3))
