-- Deletes up to $3 rows for calls of hours before $1, and as many for attempts of hours before $2.
WITH calls AS (
    DELETE FROM call_stats
    WHERE (hour, tenant, tool, state, class) IN (
        SELECT hour, tenant, tool, state, class FROM call_stats
        WHERE hour < $1 ORDER BY hour LIMIT $3 FOR UPDATE SKIP LOCKED)
    RETURNING 1
), attempts AS (
    DELETE FROM attempt_stats
    WHERE (hour, tenant, worker, tool) IN (
        SELECT hour, tenant, worker, tool FROM attempt_stats
        WHERE hour < $2 ORDER BY hour LIMIT $3 FOR UPDATE SKIP LOCKED)
    RETURNING 1
)
SELECT GREATEST((SELECT count(*) FROM calls), (SELECT count(*) FROM attempts)) AS "deleted!"
