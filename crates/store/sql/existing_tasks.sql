-- The tasks that a submission conflicts with: the same id or the same key.
SELECT i.n AS "n!", t.id AS "id!", t.conversation AS "conversation!", t.state AS "state!", t.content
FROM UNNEST($1::int[], $2::uuid[], $3::text[], $4::text[]) AS i (n, id, tenant, key)
CROSS JOIN LATERAL (
    SELECT id, conversation, state, content FROM tasks WHERE id = i.id
    UNION ALL
    SELECT id, conversation, state, content FROM tasks WHERE tenant = i.tenant AND key = i.key AND key IS NOT NULL
    LIMIT 1
) t
