-- The newest erasures, unfinished ones first.
SELECT
    id, tenant, conversation, actor, cancels, begun_at, until_at, erased_at, phase, after_text, after_id, after_letter, first_at,
    last_at, tasks, messages, steps, calls, model_turns, attempts, late_reports, dead_letters, keys, statistics, tokens
FROM tombstones
WHERE $1::text IS NULL OR tenant = $1
ORDER BY COALESCE(erased_at, 'infinity') DESC, begun_at DESC
LIMIT $2
