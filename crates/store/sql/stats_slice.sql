-- What the statistics count of calls that have ended. A call
-- of a task corrects an earlier one, if its tool's calls in the turn that called it last failed in a way that the model could
-- correct; of a turn only the first such call of each tool. Tools that do not exist are corrected by the first call of the next turn.
SELECT
    c.id AS "id!", c.finished_at AS "finished_at!", c.tenant AS "tenant!", c.tool AS "tool!", c.state AS "state!", c.class,
    c.attempt AS "attempts!",
    (extract(epoch FROM c.finished_at - c.submitted_at) * 1000)::bigint AS "total_ms!",
    CASE WHEN c.call_index > 0 AND c.turn > 1 THEN
        (NOT EXISTS (
            SELECT FROM calls_of_tasks s
            WHERE s.task_id = c.task_id AND s.turn = c.turn AND s.call_index > 0 AND s.call_index < c.call_index
                AND s.tool = c.tool)
        AND EXISTS (
            SELECT FROM calls_of_tasks p
            WHERE p.task_id = c.task_id
                AND p.turn = (
                    SELECT q.turn FROM calls_of_tasks q
                    WHERE q.task_id = c.task_id AND q.turn < c.turn AND q.call_index > 0 AND q.tool = c.tool
                    ORDER BY q.turn DESC LIMIT 1)
                AND p.call_index > 0 AND p.tool = c.tool AND p.state IN ('failed', 'refused') AND p.class = ANY ($2)
                AND p.class <> 'unknown_tool'))::int
        + (c.call_index = 1 AND EXISTS (
            SELECT FROM calls_of_tasks p
            WHERE p.task_id = c.task_id
                AND p.turn = (
                    SELECT q.turn FROM calls_of_tasks q
                    WHERE q.task_id = c.task_id AND q.turn < c.turn AND q.call_index > 0
                    ORDER BY q.turn DESC LIMIT 1)
                AND p.call_index > 0 AND p.class = 'unknown_tool'))::int
    ELSE 0 END AS "corrections!",
    -- For how many turns the model has been wrong about this tool before; 0 for a call that corrects none. The calls of a turn correct
    -- those that were fed back in the last turn that called the tool, one each, in order.
    CASE WHEN c.call_index > 0 AND c.turn > 1 AND (
            SELECT count(*) FROM calls_of_tasks p
            WHERE p.task_id = c.task_id AND p.call_index > 0 AND p.tool = c.tool AND p.state IN ('failed', 'refused')
                AND p.class = ANY ($2) AND p.turn = (
                    SELECT max(q.turn) FROM calls_of_tasks q
                    WHERE q.task_id = c.task_id AND q.turn < c.turn AND q.call_index > 0 AND q.tool = c.tool)
        ) > (
            SELECT count(*) FROM calls_of_tasks s
            WHERE s.task_id = c.task_id AND s.turn = c.turn AND s.call_index > 0 AND s.call_index < c.call_index
                AND s.tool = c.tool) THEN
        (SELECT count(DISTINCT p.turn)::int FROM calls_of_tasks p
        WHERE p.task_id = c.task_id AND p.turn < c.turn AND p.call_index > 0 AND p.tool = c.tool
            AND p.turn > COALESCE((
                -- The last turn in which none of its calls was fed back.
                SELECT max(g.turn) FROM (
                    SELECT q.turn FROM calls_of_tasks q
                    WHERE q.task_id = c.task_id AND q.turn < c.turn AND q.call_index > 0 AND q.tool = c.tool
                    GROUP BY q.turn
                    HAVING bool_and(q.state NOT IN ('failed', 'refused') OR q.class IS NULL OR q.class <> ALL ($2))) g), 0))
    ELSE 0 END AS "wrong_turns!",
    COALESCE(c.call_index, -1) AS "call_index!", c.repairs IS NOT NULL AS "is_repaired!",
    CASE WHEN c.call_index > 0 THEN (
        SELECT t.tool FROM calls_of_tasks t WHERE t.task_id = c.task_id AND t.turn = c.turn AND t.call_index = 0) END AS model_tool,
    CASE WHEN c.task_id IS NOT NULL THEN (SELECT t.agent FROM tasks t WHERE t.id = c.task_id) END AS agent,
    CASE WHEN octet_length(c.repairs::text) <= 8192 THEN c.repairs::text END AS repairs,
    CASE WHEN c.class = ANY ($2) THEN COALESCE(
        CASE WHEN octet_length(c.details::text) <= 8192 THEN c.details::text END,
        (SELECT CASE WHEN octet_length(a.details::text) <= 8192 THEN a.details::text END
        FROM attempts a WHERE a.call_id = c.id AND a.attempt = c.attempt AND a.details IS NOT NULL)) END AS details
FROM UNNEST($1::uuid[]) AS i (id)
JOIN calls c ON c.id = ANY (ARRAY[i.id])
