-- New tasks, each with a start in its inbox. A task that is on record already, by id (this batch was sent before)
-- or by key, stays unchanged. None is written whose conversation is being erased, unless it can wait for that ($14): it would not
-- start before.
WITH written AS (
    INSERT INTO tasks (
        id, tenant, conversation, key, content, agent, model, language, spec, input, traceparent, state, submitted_at,
        wake_at, submitted_by, metadata)
    SELECT
        i.id, i.tenant, i.conversation, i.key, i.content, i.agent, i.model, i.language, i.spec::json, i.input,
        i.traceparent, 'waiting', t.now, t.now + interval '1 s', i.submitted_by, i.metadata::json
    FROM UNNEST(
        $1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[],
        $10::text[], $11::text[], $12::text[], $13::text[], $14::boolean[]
    ) AS i (id, tenant, conversation, key, content, agent, model, language, spec, input, traceparent, submitted_by, metadata,
            waits),
        (SELECT clock_timestamp() AS now) t
    WHERE i.waits OR (
        SELECT e.id FROM tombstones e
        WHERE e.tenant = i.tenant AND e.erased_at IS NULL AND e.holds_starts
            AND (e.conversation IS NULL OR e.conversation = i.conversation) LIMIT 1
    ) IS NULL
    ON CONFLICT DO NOTHING
    RETURNING id, submitted_at
), notified AS (
    INSERT INTO task_inbox (task_id, kind, at) SELECT id, 'start', submitted_at FROM written
)
SELECT id AS "id!" FROM written
