-- The lowest due times of calls that do not wait in the backlog, from $1 on, and of those that do, from $2 on, up to $3 s
-- from now. Behind that nothing is due before the next look, and whatever ended since would be walked over. Not of those that
-- were found locked, $4. The clock is read by subqueries, or their conditions could not be those of the index.
SELECT
    (SELECT min(wake_at) FROM calls
     WHERE num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($1::timestamptz, '-infinity')
        AND wake_at <= (SELECT clock_timestamp() + $3::float8 * interval '1 s')
        AND id <> ALL ($4::uuid[])) AS others,
    (SELECT min(wake_at) FROM calls
     WHERE num_nonnulls(backlog_at) = 1 AND wake_at >= COALESCE($2::timestamptz, '-infinity')
        AND wake_at <= (SELECT clock_timestamp() + $3::float8 * interval '1 s')
        AND id <> ALL ($4::uuid[])) AS backlog,
    clock_timestamp() AS "now!"
