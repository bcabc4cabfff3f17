-- The contents of the messages that answer calls, each with the position of its call in the arrays.
SELECT i.n AS "n!", m.content AS "content!"
FROM UNNEST($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS i (tenant, conversation, call_id, n)
CROSS JOIN LATERAL (
    SELECT content FROM messages
    WHERE tenant = i.tenant AND conversation = i.conversation AND role = 'tool' AND call_id = i.call_id OFFSET 0
) m
