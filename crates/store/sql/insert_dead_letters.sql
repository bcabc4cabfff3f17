-- Messages that could not be processed.
INSERT INTO dead_letters (source, code, message, payload, error_count, errors, tenant, identity)
SELECT i.source, i.code, i.message, i.payload, i.error_count, i.errors::json, i.tenant, i.identity
FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bytea[], $5::int[], $6::text[], $7::text[], $8::text[])
    WITH ORDINALITY AS i (source, code, message, payload, error_count, errors, tenant, identity, position)
ORDER BY i.position
