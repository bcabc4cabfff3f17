-- The next $4 calls behind $2: which of them are the tenant's, and of the time before $3. A redrive belongs to the call that
-- it repeats.
SELECT
    id AS "id!", tenant = $1 AND (submitted_at <= $3 OR redrive_of IS NOT NULL) AS "is_of_scope!",
    wake_at IS NOT NULL AS "open!"
FROM calls
WHERE id > $2
ORDER BY id
LIMIT $4
