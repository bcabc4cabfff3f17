-- The calls that a submission conflicts with: the same id, the same key, or the same call redriven. A refused submission
-- conflicts with a call of its key only if that has the same content: one that was accepted, or else its refusal.
SELECT i.n AS "n!", c.id AS "id!", c.state AS "state!", c.content, c.submitted_at AS "submitted_at!"
FROM UNNEST($1::int[], $2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::boolean[], $7::uuid[])
    AS i (n, id, tenant, key, redrive_of, refused, content)
CROSS JOIN LATERAL (
    SELECT id, state, content, submitted_at FROM calls WHERE id = i.id
    UNION ALL
    SELECT k.id, k.state, k.content, k.submitted_at FROM call_keys o JOIN calls k ON k.id = o.call_id
    WHERE o.tenant = i.tenant AND o.key = i.key AND o.refused = '00000000-0000-0000-0000-000000000000'
        AND (NOT i.refused OR k.content = i.content)
    UNION ALL
    SELECT k.id, k.state, k.content, k.submitted_at FROM call_keys o JOIN calls k ON k.id = o.call_id
    WHERE o.tenant = i.tenant AND o.key = i.key AND o.refused = i.content AND i.refused
    UNION ALL
    SELECT k.id, k.state, k.content, k.submitted_at FROM redriven_calls o JOIN calls k ON k.id = o.redriven_as
    WHERE o.call_id = i.redrive_of
    LIMIT 1
) c
