-- Takes a tombstone back before anything was deleted, unless it was told to cancel meanwhile, and writes that its action was refused with the code $2.
WITH gone AS (
    DELETE FROM tombstones WHERE id = $1 AND phase = 'open' AND NOT cancels AND counts IS NULL
    RETURNING id
)
UPDATE actions a SET result = $2, changed = 0
FROM gone
WHERE a.erasure = gone.id AND a.result IS NULL
