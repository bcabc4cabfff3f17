-- What models answered in these calls; nothing of an answer that is too long to be read for its usage. The stored size is
-- compared first, so that a huge answer is not even decompressed.
SELECT
    call_id,
    CASE WHEN pg_column_size(output) <= 65536 THEN
        CASE WHEN octet_length(output::text) <= 262144 THEN output::text END END AS reply
FROM attempts
WHERE call_id = ANY ($1) AND class IS NULL
