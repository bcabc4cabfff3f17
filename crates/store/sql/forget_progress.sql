-- Writes how far an erasure is, and what it erased. At its end the action that it is has a result, too.
WITH written AS (
    UPDATE tombstones
    SET phase = $2,
        position = $3,
        first_at = $4,
        last_at = $5,
        counts = $6::text::json,
        next_at = clock_timestamp(),
        erased_at = CASE WHEN $2 = 'done' THEN clock_timestamp() END
    WHERE id = $1
    RETURNING id, phase, erased_at
), ended AS (
    UPDATE actions a SET result = 'done', changed = LEAST($7::bigint, 2147483647)
    FROM written w
    WHERE w.phase = 'done' AND a.erasure = w.id AND a.result IS NULL
)
SELECT erased_at FROM written
