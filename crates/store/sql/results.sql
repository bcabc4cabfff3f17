-- The contents of the messages that answer calls, each with the position of its call in the arrays: in the order of the tasks ($4) up to
-- $5 bytes together, and those of the first in any case. Those of a task are read all or not at all.
WITH found AS (
    SELECT i.n, i.task, m.content, octet_length(m.content)::bigint AS bytes
    FROM UNNEST($1::text[], $2::text[], $3::text[], $4::int[]) WITH ORDINALITY AS i (tenant, conversation, call_id, task, n)
    CROSS JOIN LATERAL (
        SELECT content FROM messages
        WHERE tenant = i.tenant AND conversation = i.conversation AND role = 'tool' AND call_id = i.call_id OFFSET 0
    ) m
), summed AS (
    SELECT *, sum(bytes) OVER (ORDER BY task) AS total, sum(bytes) OVER (PARTITION BY task) AS of_task FROM found
)
SELECT n AS "n!", CASE WHEN total <= $5::bigint OR total = of_task THEN content END AS content
FROM summed
