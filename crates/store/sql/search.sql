-- Those of some calls whose arguments ($2), result ($3), or either ($4) may contain these texts, newest first. A text
-- with an escape may contain anything. The program that asks decides: here, JSON that Postgres cannot parse would end the
-- statement.
SELECT c.id AS "call!", (octet_length(t.arguments) + octet_length(t.output))::bigint AS "bytes!"
FROM calls c
CROSS JOIN LATERAL (
    SELECT c.arguments::text AS arguments,
        COALESCE(
            (SELECT a.output::text FROM attempts a
            WHERE a.call_id = c.id AND a.attempt = c.attempt AND c.state = 'succeeded'),
            '') AS output
    OFFSET 0) t
WHERE c.id = ANY ($1)
    AND NOT EXISTS (
        SELECT FROM UNNEST($2::text[]) AS wanted
        WHERE strpos(t.arguments, wanted) = 0 AND strpos(t.arguments, '\') = 0)
    AND NOT EXISTS (
        SELECT FROM UNNEST($3::text[]) AS wanted
        WHERE strpos(t.output, wanted) = 0 AND strpos(t.output, '\') = 0)
    AND NOT EXISTS (
        SELECT FROM UNNEST($4::text[]) AS wanted
        WHERE strpos(t.arguments, wanted) = 0 AND strpos(t.arguments, '\') = 0
            AND strpos(t.output, wanted) = 0 AND strpos(t.output, '\') = 0)
ORDER BY c.id DESC
