-- Some messages of one conversation, in order.
SELECT
    seq, task_id AS task, at, role, content, thought, calls::text, call_id, tool, class, by_redial, provider::text
FROM messages
WHERE tenant = $1 AND conversation = $2 AND seq = ANY ($3)
ORDER BY seq
