-- Deletes the oldest bare calls that ended before $2, with their attempts and late reports; $1 bounds their ids.
WITH old AS MATERIALIZED (
    SELECT id FROM calls WHERE id < $1 AND finished_at < $2 AND task_id IS NULL
    ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED
), tried AS (
    DELETE FROM attempts a USING old WHERE a.call_id = old.id
), late AS (
    DELETE FROM late_reports l USING old WHERE l.call_id = old.id
), deleted AS (
    DELETE FROM calls c USING old WHERE c.id = old.id RETURNING 1
)
SELECT count(*) AS "count!" FROM deleted
