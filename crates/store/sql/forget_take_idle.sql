-- Takes unfinished erasures that nobody worked on for $1 ms.
UPDATE tombstones
SET touched_at = clock_timestamp(), until_at = COALESCE(until_at, clock_timestamp())
WHERE id = ANY (ARRAY(
    SELECT id FROM tombstones
    WHERE erased_at IS NULL AND touched_at < clock_timestamp() - $1::bigint * interval '1 ms'
    LIMIT $2
    FOR UPDATE SKIP LOCKED))
RETURNING
    id, tenant, conversation, actor, cancels, begun_at, until_at, erased_at, phase, after_text, after_id, after_letter, first_at,
    last_at, tasks, messages, steps, calls, model_turns, attempts, late_reports, dead_letters, keys, statistics, tokens
