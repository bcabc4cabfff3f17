-- The next messages of a conversation, in order, as many as $5 bytes hold, and one at least.
SELECT
    seq AS "seq!", task_id AS "task!", at AS "at!", role AS "role!", content AS "content!", thought, calls, call_id, tool,
    class, by_redial AS "by_redial!", provider
FROM (
    SELECT
        seq, task_id, at, role, content, thought, calls::text, call_id, tool, class, by_redial, provider::text,
        sum(octet_length(content) + COALESCE(octet_length(thought), 0) + COALESCE(octet_length(calls::text), 0)
            + COALESCE(octet_length(provider::text), 0)) OVER (ORDER BY seq) AS bytes,
        row_number() OVER (ORDER BY seq) AS n
    FROM (
        SELECT * FROM messages
        WHERE tenant = $1 AND conversation = $2 AND seq > $3
        ORDER BY seq
        LIMIT $4) next
) sized
WHERE bytes <= $5 OR n = 1
ORDER BY seq
