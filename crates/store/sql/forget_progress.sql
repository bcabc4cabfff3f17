-- Writes how far an erasure is, and adds to what it erased.
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
    statistics = statistics + $17
WHERE id = $1
RETURNING
    id, tenant, conversation, actor, cancels, begun_at, until_at, erased_at, phase, after_text, after_id, after_letter, first_at,
    last_at, tasks, messages, steps, calls, model_turns, attempts, late_reports, dead_letters, keys, statistics
