-- Looks at the next $4 tasks behind $1, and deletes the conversations whose last task is among them and ended before $3, with
-- their tasks, steps, messages and calls; $2 bounds the ids. Calls from $5 on are left
-- to their partitions, which will be dropped. The newest task of a conversation decides for the others, so that an active conversation
-- costs one lookup per old task (OFFSET 0 keeps that order).
WITH seen AS MATERIALIZED (
    SELECT id, tenant, conversation, finished_at FROM tasks WHERE id > $1 AND id < $2 ORDER BY id LIMIT $4
), old_conversations AS MATERIALIZED (
    SELECT l.tenant, l.conversation
    FROM (
        SELECT s.tenant, s.conversation FROM seen s
        WHERE s.finished_at < $3 AND s.id = (
            SELECT n.id FROM tasks n WHERE n.tenant = s.tenant AND n.conversation = s.conversation
            ORDER BY n.submitted_at DESC, n.id DESC LIMIT 1)
        OFFSET 0
    ) l
    WHERE (
            SELECT o.id FROM tasks o
            WHERE o.tenant = l.tenant AND o.conversation = l.conversation AND (
                o.finished_at IS NULL OR o.finished_at >= $3
                OR (SELECT c.id FROM calls_of_tasks c WHERE c.task_id = o.id AND c.wake_at IS NOT NULL LIMIT 1) IS NOT NULL)
            LIMIT 1
        ) IS NULL
), old AS MATERIALIZED (
    SELECT t.id FROM old_conversations g
    CROSS JOIN LATERAL (
        SELECT id FROM tasks WHERE tenant = g.tenant AND conversation = g.conversation ORDER BY id
    ) t
), old_calls AS MATERIALIZED (
    SELECT o.call_id AS id FROM old JOIN task_calls o ON o.task_id = ANY (ARRAY[old.id]) WHERE o.call_id < $5
), inboxes AS (
    DELETE FROM task_inbox i USING old WHERE i.task_id = ANY (ARRAY[old.id])
), steps AS (
    DELETE FROM task_steps s USING old WHERE s.task_id = ANY (ARRAY[old.id])
), offers AS (
    DELETE FROM turn_tools f USING old WHERE f.task_id = ANY (ARRAY[old.id])
), texts AS (
    DELETE FROM messages m USING old WHERE m.task_id = ANY (ARRAY[old.id])
), of_tasks AS (
    DELETE FROM task_calls o USING old WHERE o.task_id = ANY (ARRAY[old.id])
), tried AS (
    DELETE FROM attempts a USING old_calls c WHERE a.call_id = ANY (ARRAY[c.id])
), late AS (
    DELETE FROM late_reports l USING old_calls c WHERE l.call_id = ANY (ARRAY[c.id])
), ended AS (
    DELETE FROM calls c USING old_calls o WHERE c.id = ANY (ARRAY[o.id])
), deleted AS (
    DELETE FROM tasks t USING old WHERE t.id = ANY (ARRAY[old.id])
)
SELECT
    ARRAY(SELECT tenant FROM old_conversations ORDER BY tenant, conversation) AS "tenants!",
    ARRAY(SELECT conversation FROM old_conversations ORDER BY tenant, conversation) AS "conversations!",
    (SELECT count(*) FROM old) AS "tasks!",
    (SELECT id FROM seen ORDER BY id DESC LIMIT 1) AS last
