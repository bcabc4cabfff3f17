-- The newest calls that these tasks asked for.
SELECT call_id AS "id!" FROM task_calls
WHERE task_id = ANY ($1)
    AND ($2::uuid IS NULL OR call_id < $2)
    AND ($3::uuid IS NULL OR call_id >= $3)
    AND ($4::uuid IS NULL OR call_id < $4)
ORDER BY call_id DESC
LIMIT $5
