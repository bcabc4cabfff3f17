-- The next $5 calls that name a conversation, behind $3: which of them are the tenant's, and of the time before $4. A redrive
-- belongs to the call that it repeats: while the conversation is being erased, none is written that is not known yet.
SELECT
    id AS "id!", tenant = $1 AND (submitted_at <= $4 OR redrive_of IS NOT NULL) AS "is_of_scope!",
    wake_at IS NOT NULL AS "open!"
FROM calls
WHERE conversation = $2 AND id > $3
ORDER BY id
LIMIT $5
