-- New calls. A call that is on record already, by id (this batch was sent before) or by key, stays unchanged. One without
-- a consumer waits in the backlog, and need not be looked at before its deadline; one that its client serves ($29) waits for that. A refused one does not hold its key; it is
-- on record once for each content, and not at all if the same submission was accepted before. A call has a key, repeats another one, or
-- is of a task: at most one of these, so that none takes a place that it does not need in the end. A redrive needs the call that it
-- repeats: nothing of a call that was erased, or is about to be, may come back. OFFSET 0 makes each lookup one through its index. A
-- refused call has ended, and is put into the queues of ends as others are (apply.sql).
WITH i AS MATERIALIZED (
    SELECT i.*
    FROM UNNEST(
        (SELECT $2::uuid[]), $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::uuid[], $9::text[], $10::text[],
        $11::text[], $12::bigint[], $13::text[], $14::boolean[], $15::text[], $16::bigint[],
        $17::text[], $18::text[], $19::text[], $20::uuid[], $21::uuid[], $22::uuid[], $23::int[], $24::int[], $25::text[],
        $26::text[], $27::text[], $28::text[], $30::uuid[]
    ) AS i (id, tool, pool, effect, tenant, key, content, conversation, arguments,
            repairs, timeout_ms, retry, notify, traceparent, deadline_ms,
            class, message, details, redrive_of, origin_id, task_id, turn, call_index, consumer, undeclared, help,
            submitted_by, tool_version)
    WHERE (i.class IS NULL OR i.key IS NULL OR NOT EXISTS (
            SELECT FROM (
                SELECT call_id FROM call_keys
                WHERE tenant = i.tenant AND key = i.key AND refused = '00000000-0000-0000-0000-000000000000' OFFSET 0
            ) k
            CROSS JOIN LATERAL (SELECT content FROM calls WHERE id = k.call_id OFFSET 0) c
            WHERE c.content = i.content))
        AND (i.redrive_of IS NULL OR (
            SELECT o.id FROM calls o
            WHERE o.id = i.redrive_of AND (
                SELECT e.id FROM tombstones e
                WHERE e.tenant = i.tenant AND e.erased_at IS NULL
                    AND (e.conversation IS NULL OR e.conversation = i.conversation)
                    AND NOT COALESCE(o.submitted_at > e.until_at AND o.redrive_of IS NULL AND o.task_id IS NULL, false)
                LIMIT 1
            ) IS NULL
        ) IS NOT NULL)
), keyed AS (
    INSERT INTO call_keys (tenant, key, refused, call_id)
    SELECT tenant, key, CASE WHEN class IS NULL THEN '00000000-0000-0000-0000-000000000000' ELSE COALESCE(content, id) END, id
    FROM i WHERE key IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING call_id
), redriven AS (
    INSERT INTO redriven_calls (call_id, redriven_as)
    SELECT redrive_of, id FROM i WHERE redrive_of IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING redriven_as
), of_task AS (
    INSERT INTO task_calls (task_id, turn, call_index, call_id)
    SELECT task_id, turn, call_index, id FROM i WHERE task_id IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING call_id
), written AS (
    INSERT INTO calls (
        id, state, wake_at, tool, pool, effect, tenant, key, content, conversation, arguments, timeout_ms, retry, notify,
        traceparent, submitted_at, published_at, deadline_at, finished_at, class, message, details, redrive_of, origin_id, repairs,
        task_id, turn, call_index, consumer, publish_no, backlog_at,
        undeclared, help, submitted_by, tool_version)
    SELECT
        i.id,
        CASE WHEN i.class IS NOT NULL THEN 'refused' WHEN i.pool = $29 THEN 'client_wait' ELSE 'ready' END,
        CASE WHEN i.class IS NULL THEN t.now + CASE WHEN i.consumer IS NULL THEN i.deadline_ms
            ELSE LEAST($1::bigint, i.deadline_ms) END * interval '1 ms' END,
        i.tool, i.pool, i.effect, i.tenant, i.key, i.content, i.conversation, i.arguments::json, i.timeout_ms,
        i.retry::json, i.notify, i.traceparent, t.now, CASE WHEN i.consumer IS NOT NULL THEN t.now END, t.now + i.deadline_ms * interval '1 ms',
        CASE WHEN i.class IS NOT NULL THEN t.now END,
        i.class, i.message, i.details::json, i.redrive_of, i.origin_id, i.repairs::json,
        i.task_id, i.turn, i.call_index, i.consumer, (i.consumer IS NOT NULL)::int,
        CASE WHEN i.class IS NULL AND i.consumer IS NULL AND i.pool <> $29 THEN t.now END,
        i.undeclared::json, i.help::json, i.submitted_by, i.tool_version
    FROM i, (SELECT clock_timestamp() AS now) t
    WHERE (i.key IS NULL OR i.id IN (SELECT call_id FROM keyed))
        AND (i.redrive_of IS NULL OR i.id IN (SELECT redriven_as FROM redriven))
        AND (i.task_id IS NULL OR i.id IN (SELECT call_id FROM of_task))
    ON CONFLICT DO NOTHING
    RETURNING id, tenant, finished_at
), counted AS (
    INSERT INTO uncounted_calls (call_id, ended_at) SELECT id, finished_at FROM written WHERE finished_at IS NOT NULL
), told AS (
    INSERT INTO untold_ends (id, is_task, ended_at)
    SELECT c.id, false, c.finished_at FROM written c
    WHERE c.finished_at IS NOT NULL
        AND (SELECT w.id FROM webhooks w WHERE w.tenant = c.tenant AND w.state = 'active' LIMIT 1) IS NOT NULL
)
SELECT id FROM written
