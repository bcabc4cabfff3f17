-- Which of these calls another transaction has locked now. Those that are not on record are not.
WITH free AS MATERIALIZED (
    SELECT c.id
    FROM UNNEST((SELECT $1::uuid[])) AS i (id), calls c
    WHERE c.id = ANY (ARRAY[i.id])
    FOR NO KEY UPDATE OF c SKIP LOCKED
)
SELECT c.id
FROM UNNEST((SELECT $1::uuid[])) AS i (id), calls c
WHERE c.id = ANY (ARRAY[i.id]) AND NOT EXISTS (SELECT FROM free WHERE free.id = c.id)
