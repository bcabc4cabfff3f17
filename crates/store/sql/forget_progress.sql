-- Writes how far an erasure is, and adds to what it erased. At its end the action that it is has a result, too.
WITH written AS (
    UPDATE tombstones
    SET phase = $2,
        after_text = $3,
        after_id = $4,
        after_letter = $5,
        touched_at = clock_timestamp(),
        erased_at = CASE WHEN $2 = 'done' THEN clock_timestamp() END,
        first_at = LEAST(first_at, $6),
        last_at = GREATEST(last_at, $7),
        tasks = tasks + $8,
        messages = messages + $9,
        steps = steps + $10,
        calls = calls + $11,
        model_turns = model_turns + $12,
        attempts = attempts + $13,
        late_reports = late_reports + $14,
        dead_letters = dead_letters + $15,
        keys = keys + $16,
        statistics = statistics + $17,
        tokens = tokens + $18
    WHERE id = $1
    RETURNING *
), ended AS (
    UPDATE actions a SET result = 'done', changed = LEAST(w.tasks + w.calls, 2147483647)
    FROM written w
    WHERE w.phase = 'done' AND a.erasure = w.id AND a.result IS NULL
)
SELECT
    id AS "id!", tenant AS "tenant!", conversation, actor AS "actor!", cancels AS "cancels!", begun_at AS "begun_at!", until_at,
    erased_at, phase AS "phase!", after_text, after_id, after_letter, first_at, last_at, tasks AS "tasks!",
    messages AS "messages!", steps AS "steps!", calls AS "calls!", model_turns AS "model_turns!", attempts AS "attempts!",
    late_reports AS "late_reports!", dead_letters AS "dead_letters!", keys AS "keys!", statistics AS "statistics!",
    tokens AS "tokens!"
FROM written
