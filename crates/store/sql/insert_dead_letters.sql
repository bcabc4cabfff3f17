-- Messages that could not be processed. $9 and $10 are the calls that they name, each with the position of its message in the
-- arrays. If one of them is not on record, nothing of the message is kept but that it came: it may have been erased. The
-- calls stay locked until the commit, so that none is deleted meanwhile. A message that names calls of one tenant is of it.
WITH named AS (
    SELECT position, call FROM UNNEST($9::int[], $10::uuid[]) AS n (position, call)
), known AS MATERIALIZED (
    SELECT id, tenant FROM calls WHERE id = ANY ($10::uuid[]) ORDER BY id FOR KEY SHARE
), gone AS MATERIALIZED (
    SELECT DISTINCT position FROM named WHERE call NOT IN (SELECT id FROM known)
), belongs AS MATERIALIZED (
    SELECT n.position, min(k.tenant) AS tenant
    FROM named n JOIN known k ON k.id = n.call
    GROUP BY n.position
    HAVING min(k.tenant) = max(k.tenant)
)
INSERT INTO dead_letters (source, code, message, payload, error_count, errors, tenant, identity)
SELECT
    i.source, i.code, CASE WHEN g.position IS NULL THEN i.message ELSE $11 END,
    CASE WHEN g.position IS NULL THEN i.payload ELSE '' END, i.error_count,
    CASE WHEN g.position IS NULL THEN i.errors::json END, COALESCE(i.tenant, b.tenant), i.identity
FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bytea[], $5::int[], $6::text[], $7::text[], $8::text[])
    WITH ORDINALITY AS i (source, code, message, payload, error_count, errors, tenant, identity, position)
LEFT JOIN gone g ON g.position = i.position
LEFT JOIN belongs b ON b.position = i.position
ORDER BY i.position
