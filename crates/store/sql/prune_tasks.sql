-- Deletes conversations whose last task is old, with their tasks, steps, messages and calls. The newest task of a
-- conversation decides for the others, so that an active conversation costs one lookup per old task (OFFSET 0 keeps
-- that order).
WITH old_conversations AS MATERIALIZED (
    SELECT l.tenant, l.conversation
    FROM (
        SELECT t.id, t.tenant, t.conversation FROM tasks t
        WHERE t.id < $1 AND t.finished_at < $2 AND t.id = (
            SELECT n.id FROM tasks n WHERE n.tenant = t.tenant AND n.conversation = t.conversation
            ORDER BY n.submitted_at DESC, n.id DESC LIMIT 1)
        ORDER BY t.id
        OFFSET 0
    ) l
    WHERE (
            SELECT o.id FROM tasks o
            WHERE o.tenant = l.tenant AND o.conversation = l.conversation AND (
                o.finished_at IS NULL OR o.finished_at >= $2
                OR (SELECT c.id FROM calls c WHERE c.task_id = o.id AND c.wake_at IS NOT NULL LIMIT 1) IS NOT NULL)
            LIMIT 1
        ) IS NULL
    LIMIT $3
), old AS MATERIALIZED (
    SELECT t.id FROM old_conversations g
    CROSS JOIN LATERAL (
        SELECT id FROM tasks WHERE tenant = g.tenant AND conversation = g.conversation ORDER BY id
    ) t
), old_calls AS MATERIALIZED (
    SELECT c.id FROM old JOIN calls c ON c.task_id = ANY (ARRAY[old.id]) WHERE c.task_id IS NOT NULL
), inboxes AS (
    DELETE FROM task_inbox i USING old WHERE i.task_id = ANY (ARRAY[old.id])
), steps AS (
    DELETE FROM task_steps s USING old WHERE s.task_id = ANY (ARRAY[old.id])
), texts AS (
    DELETE FROM messages m USING old WHERE m.task_id = ANY (ARRAY[old.id])
), tried AS (
    DELETE FROM attempts a USING old_calls c WHERE a.call_id = ANY (ARRAY[c.id])
), late AS (
    DELETE FROM late_reports l USING old_calls c WHERE l.call_id = ANY (ARRAY[c.id])
), ended AS (
    DELETE FROM calls c USING old_calls o WHERE c.id = ANY (ARRAY[o.id])
), deleted AS (
    DELETE FROM tasks t USING old WHERE t.id = ANY (ARRAY[old.id])
)
SELECT g.tenant AS "tenant!", g.conversation AS "conversation!", (SELECT count(*) FROM old) AS "tasks!" FROM old_conversations g
