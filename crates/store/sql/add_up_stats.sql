-- Sums of a kind over some hours, of a tenant or of all, of a tool or of all: names that do not stay apart are empty.
SELECT
    CASE WHEN $6::boolean THEN hour ELSE $2 END AS "hour!",
    tenant AS "tenant!",
    CASE WHEN $7::boolean THEN tool ELSE '' END AS "tool!",
    CASE WHEN $8::boolean THEN a ELSE '' END AS "a!",
    CASE WHEN $9::boolean THEN b ELSE '' END AS "b!",
    CASE WHEN $10::boolean THEN c ELSE '' END AS "c!",
    -- As many as the kind with the most has; one that has fewer has nulls there.
    array_remove(ARRAY[
        sum(counts[1]), sum(counts[2]), sum(counts[3]), sum(counts[4]), sum(counts[5]), sum(counts[6]), sum(counts[7]),
        sum(counts[8]), sum(counts[9]), sum(counts[10]), sum(counts[11]), sum(counts[12]), sum(counts[13])], NULL)::bigint[]
        AS "counts!"
FROM stats
WHERE kind = $1 AND hour >= $2 AND hour < $3 AND ($4::text IS NULL OR tenant = $4) AND ($5::text IS NULL OR tool = $5)
GROUP BY 1, 2, 3, 4, 5, 6
