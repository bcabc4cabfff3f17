-- Deletes calls whose attempts and late reports are deleted.
WITH gone AS (
    DELETE FROM calls WHERE id = ANY ($1) AND finished_at IS NOT NULL
    RETURNING id, tenant, key, state, redrive_of, task_id, turn, call_index, submitted_at
), keys AS (
    DELETE FROM call_keys k USING gone WHERE k.tenant = gone.tenant AND k.key = gone.key AND k.call_id = gone.id
), redriven AS (
    DELETE FROM redriven_calls r USING gone WHERE r.call_id = gone.redrive_of AND r.redriven_as = gone.id
), of_tasks AS (
    DELETE FROM task_calls t USING gone WHERE t.task_id = gone.task_id AND t.turn = gone.turn AND t.call_index = gone.call_index
)
SELECT
    count(*) AS "calls!", count(*) FILTER (WHERE call_index = 0) AS "model_turns!",
    count(key) FILTER (WHERE state <> 'refused') AS "keys!", min(submitted_at) AS first, max(submitted_at) AS last
FROM gone
