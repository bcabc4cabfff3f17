-- The lowest due times of calls that do not wait in the backlog, from $1 on, and of those that do, from $2 on.
SELECT
    (SELECT min(wake_at) FROM calls
     WHERE num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($1::timestamptz, '-infinity')) AS others,
    (SELECT min(wake_at) FROM calls
     WHERE num_nonnulls(backlog_at) = 1 AND wake_at >= COALESCE($2::timestamptz, '-infinity')) AS backlog,
    clock_timestamp() AS "now!"
