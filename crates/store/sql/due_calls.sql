-- Calls that are due and that a sweep left, from its marks $1 and $2 on, but for those of $3: up to $4 of each part, as in lock_due_calls.sql.
(SELECT id AS "id!" FROM calls
 WHERE num_nonnulls(backlog_at) = 0 AND wake_at >= COALESCE($1::timestamptz, '-infinity') AND wake_at <= (SELECT clock_timestamp())
    AND id <> ALL ($3::uuid[])
 ORDER BY wake_at
 LIMIT $4)
UNION ALL
(SELECT id FROM calls
 WHERE num_nonnulls(backlog_at) = 1 AND wake_at >= COALESCE($2::timestamptz, '-infinity') AND wake_at <= (SELECT clock_timestamp())
    AND id <> ALL ($3::uuid[])
 ORDER BY wake_at
 LIMIT $4)
