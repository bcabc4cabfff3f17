-- Changes tasks, and tells for each that ends the next of its conversation that its turn has come. So are those told
-- that come after a task which was told to start but had ended meanwhile ($19). The answer holds every changed task.
WITH changed AS (
    UPDATE tasks t
    SET state = i.state,
        progress = i.progress::json,
        wake_at = CASE WHEN NOT i.ends THEN i.wake_at END,
        last_step = i.last_step,
        started_at = CASE WHEN i.starts THEN $2 ELSE t.started_at END,
        finished_at = CASE WHEN i.ends THEN $2 END,
        code = i.code,
        message = i.message,
        answer = i.answer,
        turns = i.turns,
        tool_calls = i.tool_calls,
        corrections = i.corrections,
        input_tokens = i.input_tokens,
        output_tokens = i.output_tokens,
        cost_micros = i.cost_micros
    FROM UNNEST(
        $1::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::int[], $7::int[], $8::boolean[], $9::boolean[],
        $10::text[], $11::text[], $12::text[], $13::int[], $14::int[], $15::int[], $16::bigint[], $17::bigint[],
        $18::bigint[]
    ) AS i (id, state, progress, wake_at, was_step, last_step, starts, ends, code, message, answer, turns, tool_calls,
            corrections, input_tokens, output_tokens, cost_micros)
    WHERE t.id = ANY (ARRAY[i.id]) AND t.last_step = i.was_step
    RETURNING t.id, t.tenant, t.conversation, i.ends
), over AS (
    SELECT id, tenant, conversation FROM changed WHERE ends
    UNION ALL
    SELECT id, tenant, conversation FROM tasks WHERE id = ANY ($19::uuid[])
), next AS (
    SELECT over.id, w.id AS next
    FROM over
    CROSS JOIN LATERAL (
        SELECT id FROM tasks
        WHERE tenant = over.tenant AND conversation = over.conversation AND state = 'waiting'
            AND id NOT IN (SELECT id FROM changed WHERE ends)
        ORDER BY id LIMIT 1
    ) w
), told AS (
    INSERT INTO task_inbox (task_id, kind, at) SELECT DISTINCT next, 'start', $2 FROM next
)
SELECT c.id AS "id!", n.next AS "next?"
FROM changed c
LEFT JOIN next n ON n.id = c.id
