-- Looks at the next $4 calls behind $1, and deletes those bare ones that ended before $3, with their attempts and late reports;
-- $2 bounds their ids.
WITH seen AS MATERIALIZED (
    SELECT id, finished_at, task_id FROM calls WHERE id > $1 AND id < $2 ORDER BY id LIMIT $4
), old AS MATERIALIZED (
    SELECT id FROM calls
    WHERE id = ANY (ARRAY(SELECT id FROM seen WHERE finished_at < $3 AND task_id IS NULL))
    FOR UPDATE SKIP LOCKED
), tried AS (
    DELETE FROM attempts a USING old WHERE a.call_id = old.id
), late AS (
    DELETE FROM late_reports l USING old WHERE l.call_id = old.id
), deleted AS (
    DELETE FROM calls c USING old WHERE c.id = old.id RETURNING 1
)
SELECT (SELECT count(*) FROM deleted) AS "deleted!", (SELECT id FROM seen ORDER BY id DESC LIMIT 1) AS last
