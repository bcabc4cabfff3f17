-- Deletes calls whose attempts and late reports are deleted.
WITH gone AS (
    DELETE FROM calls WHERE id = ANY ($1) AND finished_at IS NOT NULL RETURNING key, refused, call_index, submitted_at
)
SELECT
    count(*) AS "calls!", count(*) FILTER (WHERE call_index = 0) AS "model_turns!",
    count(key) FILTER (WHERE NOT refused) AS "keys!", min(submitted_at) AS first, max(submitted_at) AS last
FROM gone
