-- Writes transitions of tasks, and puts a start into the inbox of the next task of each conversation whose task ends.
-- It also does so after an ended task whose inbox holds a start. A task that ends is put into the queue of webhooks, if its tenant
-- has an active one. The answer holds every changed task, with the next one if it ended.
-- $1: the time of the commit; $2: ended tasks with a start in their inbox; from $3 on, one array for each column.
WITH changed AS (
    UPDATE tasks t
    SET state = i.state,
        progress = i.progress::json,
        wake_at = CASE WHEN NOT i.ends THEN i.wake_at END,
        last_step = i.last_step,
        started_at = CASE WHEN i.starts THEN $1 ELSE t.started_at END,
        finished_at = CASE WHEN i.ends THEN $1 END,
        code = i.code,
        message = i.message,
        answer = i.answer,
        turns = i.turns,
        tool_calls = i.tool_calls,
        corrections = i.corrections,
        input_tokens = i.input_tokens,
        output_tokens = i.output_tokens,
        cost_micros = i.cost_micros,
        estimated_input_tokens = i.estimated_input_tokens,
        estimated_output_tokens = i.estimated_output_tokens,
        estimated_cost_micros = i.estimated_cost_micros,
        turns_without_price = i.turns_without_price
    FROM UNNEST(
        $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::int[], $8::int[], $9::boolean[], $10::boolean[],
        $11::text[], $12::text[], $13::text[], $14::int[], $15::int[], $16::int[], $17::bigint[], $18::bigint[],
        $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[], $23::int[]
    ) AS i (id, state, progress, wake_at, was_step, last_step, starts, ends, code, message, answer, turns, tool_calls,
            corrections, input_tokens, output_tokens, cost_micros, estimated_input_tokens, estimated_output_tokens,
            estimated_cost_micros, turns_without_price)
    WHERE t.id = ANY (ARRAY[i.id]) AND t.last_step = i.was_step
    RETURNING t.id, t.tenant, t.conversation, i.ends
), over AS (
    SELECT id, tenant, conversation FROM changed WHERE ends
    UNION ALL
    SELECT id, tenant, conversation FROM tasks WHERE id = ANY ($2::uuid[])
), next AS (
    SELECT over.id, w.id AS next
    FROM over
    CROSS JOIN LATERAL (
        SELECT id FROM tasks
        WHERE tenant = over.tenant AND conversation = over.conversation AND state = 'waiting'
            AND id NOT IN (SELECT id FROM changed WHERE ends)
        ORDER BY submitted_at, id LIMIT 1
    ) w
), notified AS (
    INSERT INTO task_inbox (task_id, kind, at) SELECT DISTINCT next, 'start', $1 FROM next
), told AS (
    INSERT INTO untold_ends (id, is_task, ended_at)
    SELECT c.id, true, $1 FROM changed c
    WHERE c.ends AND (SELECT w.id FROM webhooks w WHERE w.tenant = c.tenant AND w.state = 'active' LIMIT 1) IS NOT NULL
)
SELECT c.id AS "id!", n.next AS "next?"
FROM changed c
LEFT JOIN next n ON n.id = c.id
