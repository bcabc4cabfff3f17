-- Deletes up to $3 rows for calls, models, their days and pointers of hours before $1, and as many for attempts of hours before $2.
WITH calls AS (
    DELETE FROM call_stats
    WHERE (hour, tenant, tool, state, class) IN (
        SELECT hour, tenant, tool, state, class FROM call_stats
        WHERE hour < $1 ORDER BY hour LIMIT $3 FOR UPDATE SKIP LOCKED)
    RETURNING 1
), models AS (
    DELETE FROM model_stats
    WHERE (hour, tenant, agent, model, tool) IN (
        SELECT hour, tenant, agent, model, tool FROM model_stats
        WHERE hour < $1 ORDER BY hour LIMIT $3 FOR UPDATE SKIP LOCKED)
    RETURNING 1
), days AS (
    DELETE FROM model_day_stats
    WHERE (day, tenant, agent, model, tool) IN (
        SELECT day, tenant, agent, model, tool FROM model_day_stats
        WHERE day < $1 ORDER BY day LIMIT $3 FOR UPDATE SKIP LOCKED)
    RETURNING 1
), pointers AS (
    DELETE FROM pointer_stats
    WHERE (hour, tenant, tool, what, pointer, rule) IN (
        SELECT hour, tenant, tool, what, pointer, rule FROM pointer_stats
        WHERE hour < $1 ORDER BY hour LIMIT $3 FOR UPDATE SKIP LOCKED)
    RETURNING 1
), attempts AS (
    DELETE FROM attempt_stats
    WHERE (hour, tenant, worker, tool) IN (
        SELECT hour, tenant, worker, tool FROM attempt_stats
        WHERE hour < $2 ORDER BY hour LIMIT $3 FOR UPDATE SKIP LOCKED)
    RETURNING 1
)
SELECT GREATEST(
    (SELECT count(*) FROM calls), (SELECT count(*) FROM models), (SELECT count(*) FROM days),
    (SELECT count(*) FROM pointers), (SELECT count(*) FROM attempts)) AS "deleted!"
