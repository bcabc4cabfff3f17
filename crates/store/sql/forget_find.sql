-- The tombstone with this id, or the unfinished one of this scope. What is submitted from now on is not erased: whoever reads
-- the tables after this moment finds the tombstone.
UPDATE tombstones
SET until_at = COALESCE(until_at, clock_timestamp()), cancels = cancels OR ($4 AND erased_at IS NULL), touched_at = clock_timestamp()
WHERE id = (
    SELECT found.id FROM (
        SELECT id, 1 AS n FROM tombstones WHERE id = $1
        UNION ALL
        SELECT id, 2 FROM tombstones
        WHERE tenant = $2 AND COALESCE(conversation, '') = COALESCE($3, '') AND (conversation IS NULL) = ($3::text IS NULL)
            AND erased_at IS NULL
    ) found
    ORDER BY found.n
    LIMIT 1
)
RETURNING
    id, tenant, conversation, actor, cancels, begun_at, until_at, erased_at, phase, after_text, after_id, after_letter, first_at,
    last_at, tasks, messages, steps, calls, model_turns, attempts, late_reports, dead_letters, keys, statistics
