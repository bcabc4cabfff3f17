-- Looks at the next $4 redrives behind $1 and before $2, and deletes what is on record of those that ended before $3 or are gone. What
-- runs the call of a task on record again stays, as in needed_calls.
WITH seen AS MATERIALIZED (
    SELECT call_id, redriven_as FROM redriven_calls
    WHERE redriven_as > $1 AND redriven_as < $2 ORDER BY redriven_as LIMIT $4
), freed AS (
    DELETE FROM redriven_calls r USING seen s
    WHERE r.call_id = s.call_id
        AND (SELECT c.id FROM calls c WHERE c.id = s.redriven_as AND (c.finished_at IS NULL OR c.finished_at >= $3)) IS NULL
        AND (SELECT o.call_id FROM task_calls o
            WHERE o.call_id = (SELECT c.origin_id FROM calls c WHERE c.id = s.redriven_as) LIMIT 1) IS NULL
)
SELECT (SELECT s.redriven_as FROM seen s ORDER BY s.redriven_as DESC LIMIT 1) AS last
