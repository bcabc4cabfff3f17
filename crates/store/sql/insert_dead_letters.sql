-- Messages that could not be processed. $8 and $9 are the calls that they name, each with the position of its message in the
-- arrays. If one of them is not on record, nothing of the message is kept but that it came: it may have been erased. The
-- calls stay locked until the commit, so that none is deleted meanwhile.
WITH named AS (
    SELECT position, call FROM UNNEST($8::int[], $9::uuid[]) AS n (position, call)
), known AS MATERIALIZED (
    SELECT id FROM calls WHERE id = ANY ($9::uuid[]) ORDER BY id FOR KEY SHARE
), gone AS MATERIALIZED (
    SELECT DISTINCT position FROM named WHERE call NOT IN (SELECT id FROM known)
)
INSERT INTO dead_letters (source, code, message, payload, error_count, errors, tenant)
SELECT
    i.source, i.code, CASE WHEN g.position IS NULL THEN i.message ELSE $10 END,
    CASE WHEN g.position IS NULL THEN i.payload ELSE '' END, i.error_count,
    CASE WHEN g.position IS NULL THEN i.errors::json END, i.tenant
FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bytea[], $5::int[], $6::text[], $7::text[])
    WITH ORDINALITY AS i (source, code, message, payload, error_count, errors, tenant, position)
LEFT JOIN gone g ON g.position = i.position
ORDER BY i.position
