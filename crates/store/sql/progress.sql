-- How far calls and tasks are: a number that changes with whatever happens to them. Of a call: attempts, whether one runs,
-- whether it has ended; of a task: steps, whether it has started, whether it has ended.
SELECT
    id AS "id!", tenant AS "tenant!",
    (attempt::bigint << 3) | (worker IS NOT NULL)::int::bigint << 2 | (state = 'retry_wait')::int::bigint << 1
        | (finished_at IS NOT NULL)::int::bigint AS "position!"
FROM calls WHERE id = ANY ($1)
UNION ALL
SELECT id, tenant, (last_step::bigint << 3) | (started_at IS NOT NULL)::int::bigint << 1 | (finished_at IS NOT NULL)::int::bigint
FROM tasks WHERE id = ANY ($1)
