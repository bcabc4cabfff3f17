-- The calls that a submission conflicts with: the same id, the same key, or the same call redriven. A refused submission
-- conflicts with a call of its key only if that has the same content: one that was accepted, or else its refusal.
SELECT i.n AS "n!", c.id AS "id!", c.state AS "state!", c.content, c.submitted_at AS "submitted_at!"
FROM UNNEST($1::int[], $2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::boolean[], $7::uuid[])
    AS i (n, id, tenant, key, redrive_of, refused, content)
CROSS JOIN LATERAL (
    SELECT id, state, content, submitted_at FROM calls WHERE id = i.id
    UNION ALL
    SELECT id, state, content, submitted_at FROM calls
    WHERE tenant = i.tenant AND key = i.key AND key IS NOT NULL AND NOT refused
        AND (NOT i.refused OR content = i.content)
    UNION ALL
    SELECT id, state, content, submitted_at FROM calls
    WHERE tenant = i.tenant AND key = i.key AND key IS NOT NULL AND refused AND i.refused AND content = i.content
    UNION ALL
    SELECT id, state, content, submitted_at FROM calls WHERE redrive_of = i.redrive_of AND redrive_of IS NOT NULL
    LIMIT 1
) c
