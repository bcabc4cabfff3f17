-- Stores late reports of calls that are on record, except those whose attempt ended with just that report: they were only sent
-- twice. $7: the sender has the attempt now. A report of an attempt that its sender never had, as far as is known, is kept, too,
-- but only while the call has at most $8 reports with it: the sender chooses the number of the attempt.
INSERT INTO late_reports (call_id, attempt, worker, class, message, output)
SELECT i.id, i.attempt, i.worker, i.class, i.message, i.output::json
FROM (
    SELECT *, row_number() OVER (PARTITION BY id ORDER BY position) AS nth
    FROM UNNEST($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[])
        WITH ORDINALITY AS r (id, attempt, worker, class, message, output, is_held, position)
) i
WHERE NOT EXISTS (
        SELECT FROM attempts a
        WHERE a.call_id = i.id AND a.attempt = i.attempt AND a.worker = i.worker
            AND a.class IS NOT DISTINCT FROM i.class)
    AND NOT EXISTS (
        SELECT FROM late_reports l
        WHERE l.call_id = i.id AND l.attempt = i.attempt AND l.worker = i.worker)
    AND (i.is_held
        OR (SELECT a.attempt FROM attempts a
            WHERE a.call_id = i.id AND a.attempt = i.attempt AND a.worker = i.worker) IS NOT NULL
        OR i.nth + (SELECT count(*) FROM (SELECT FROM late_reports l WHERE l.call_id = i.id LIMIT $8) kept) <= $8)
ORDER BY i.position
RETURNING call_id, attempt
