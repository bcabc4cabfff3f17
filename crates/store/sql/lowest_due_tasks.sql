-- The lowest item of all inboxes from $1 on, or the last one that there was, and the lowest due time of a task from $2 on.
SELECT
    COALESCE(
        (SELECT id FROM task_inbox WHERE id >= COALESCE($1::bigint, 0) ORDER BY id LIMIT 1),
        (SELECT last_value FROM task_inbox_id_seq)) AS item,
    (SELECT min(wake_at) FROM tasks WHERE wake_at >= COALESCE($2::timestamptz, '-infinity')) AS wake_at,
    clock_timestamp() AS "now!"
