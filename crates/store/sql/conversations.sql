-- All messages of conversations, each with the position of its conversation in the arrays.
SELECT
    i.n AS "n!", m.seq AS "seq!", m.task_id AS "task_id!", m.at AS "at!", m.role AS "role!", m.content AS "content!",
    m.thought, m.calls::text, m.call_id, m.tool, m.class, m.by_redial AS "by_redial!", m.provider::text
FROM UNNEST($1::text[], $2::text[]) WITH ORDINALITY AS i (tenant, conversation, n)
CROSS JOIN LATERAL (
    SELECT * FROM messages WHERE tenant = i.tenant AND conversation = i.conversation ORDER BY seq
) m
