-- Messages that could not be processed.
INSERT INTO dead_letters (source, code, message, payload)
SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bytea[])
