-- The calls that a submission conflicts with: the same id, the same key, or the same call redriven.
SELECT i.n AS "n!", c.id AS "id!", c.state AS "state!", c.content
FROM UNNEST($1::int[], $2::uuid[], $3::text[], $4::text[], $5::uuid[]) AS i (n, id, tenant, key, redrive_of)
CROSS JOIN LATERAL (
    SELECT id, state, content FROM calls WHERE id = i.id
    UNION ALL
    SELECT id, state, content FROM calls WHERE tenant = i.tenant AND key = i.key AND key IS NOT NULL
    UNION ALL
    SELECT id, state, content FROM calls WHERE redrive_of = i.redrive_of AND redrive_of IS NOT NULL
    LIMIT 1
) c
