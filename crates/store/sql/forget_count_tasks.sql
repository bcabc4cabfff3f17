-- Counts the tasks of a scope, and what belongs to them, up to $3 of each; and the tokens of a tenant.
WITH of AS MATERIALIZED (
    SELECT id, key, finished_at FROM tasks WHERE tenant = $1 AND ($2::text IS NULL OR conversation = $2) LIMIT $3
)
SELECT
    count(*) AS "tasks!", count(key) AS "keys!", count(*) FILTER (WHERE finished_at IS NULL) AS "open!",
    (SELECT count(*) FROM (SELECT FROM of JOIN messages m ON m.task_id = of.id LIMIT $3) m) AS "messages!",
    (SELECT count(*) FROM (SELECT FROM of JOIN task_steps s ON s.task_id = of.id LIMIT $3) s) AS "steps!",
    (SELECT count(*) FROM tokens WHERE tenant = $1 AND $2::text IS NULL) AS "tokens!"
FROM of
