-- Bytes of what calls and their attempts hold, newest first.
SELECT
    c.id AS "call!",
    (CASE WHEN c.pool = 'models' THEN COALESCE((c.arguments ->> 'bytes')::bigint, octet_length(c.arguments::text))
        ELSE octet_length(c.arguments::text) END + COALESCE(octet_length(c.details::text), 0) + COALESCE(
        (SELECT sum(octet_length(a.output::text)) FROM attempts a WHERE a.call_id = c.id AND a.output IS NOT NULL), 0)
    )::bigint AS "bytes!"
FROM calls c
WHERE c.id = ANY ($1)
ORDER BY c.id DESC
