-- The newest calls that these tasks asked for.
SELECT id FROM calls
WHERE task_id = ANY ($1)
    AND ($2::uuid IS NULL OR id < $2)
    AND ($3::uuid IS NULL OR id >= $3)
    AND ($4::uuid IS NULL OR id < $4)
ORDER BY id DESC
LIMIT $5
