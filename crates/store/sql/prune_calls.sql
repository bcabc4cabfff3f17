-- Looks at the next $4 calls behind $1, and deletes those that ended before $3, with their attempts, late reports and keys; $2 bounds
-- their ids. Those of tasks on record stay: pruning these deletes them, too. So do redrives of those, which are redriven once.
WITH seen AS MATERIALIZED (
    SELECT id, finished_at, task_id, turn, call_index, origin_id FROM calls WHERE id > $1 AND id < $2 ORDER BY id LIMIT $4
), old AS MATERIALIZED (
    SELECT id, tenant, key FROM calls
    WHERE id = ANY (ARRAY(
        SELECT s.id FROM seen s
        WHERE s.finished_at < $3 AND (s.task_id IS NULL OR (
            SELECT o.call_id FROM task_calls o
            WHERE o.task_id = s.task_id AND o.turn = s.turn AND o.call_index = s.call_index) IS NULL)
            AND (s.origin_id IS NULL OR (SELECT o.call_id FROM task_calls o WHERE o.call_id = s.origin_id LIMIT 1) IS NULL)))
    FOR UPDATE SKIP LOCKED
), tried AS (
    DELETE FROM attempts a USING old WHERE a.call_id = old.id
), late AS (
    DELETE FROM late_reports l USING old WHERE l.call_id = old.id
), keys AS (
    DELETE FROM call_keys k USING old WHERE k.tenant = old.tenant AND k.key = old.key AND k.call_id = old.id
), redriven AS (
    DELETE FROM redriven_calls r USING old WHERE r.redriven_as = old.id
), deleted AS (
    DELETE FROM calls c USING old WHERE c.id = old.id RETURNING 1
)
SELECT (SELECT count(*) FROM deleted) AS "deleted!", (SELECT id FROM seen ORDER BY id DESC LIMIT 1) AS last
