-- Tasks that are due, but for those of $2. The inbox is read from its oldest item on (from $3 on, below which none was left, as of
-- due times below $4), and not to its end, however much has
-- piled up; ten items for each task wanted, because a task can have many. What is left out is left out before that limit, or
-- its items could fill it. The clock is read by a subquery, or its condition could not be one of the index.
SELECT task_id AS "task_id!"
FROM (
    SELECT i.task_id, min(i.at) AS since
    FROM (
        SELECT task_id, at FROM task_inbox WHERE id >= COALESCE($3::bigint, 0) AND task_id <> ALL ($2::uuid[]) ORDER BY id LIMIT 10 * $1::bigint
    ) i
    GROUP BY i.task_id
    UNION ALL
    (
        SELECT id, wake_at FROM tasks
        WHERE wake_at >= COALESCE($4::timestamptz, '-infinity') AND wake_at <= (SELECT clock_timestamp()) AND id <> ALL ($2::uuid[])
        ORDER BY wake_at LIMIT $1
    )
) due
GROUP BY task_id
ORDER BY min(since)
LIMIT $1
