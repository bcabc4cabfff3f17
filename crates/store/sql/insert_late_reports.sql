-- Stores late reports, except those whose attempt ended with just that report: they were only sent twice; and except those of
-- calls that are not on record, because what was erased or pruned must not come back. The calls stay locked until the commit,
-- so that none is deleted meanwhile.
WITH known AS MATERIALIZED (
    SELECT id FROM calls WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE
)
INSERT INTO late_reports (call_id, attempt, worker, class, message, output)
SELECT i.id, i.attempt, i.worker, i.class, i.message, i.output::json
FROM UNNEST($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS i (id, attempt, worker, class, message, output)
WHERE i.id IN (SELECT id FROM known)
    AND NOT EXISTS (
        SELECT FROM attempts a
        WHERE a.call_id = i.id AND a.attempt = i.attempt AND a.worker = i.worker
            AND a.class IS NOT DISTINCT FROM i.class)
    AND NOT EXISTS (
        SELECT FROM late_reports l
        WHERE l.call_id = i.id AND l.attempt = i.attempt AND l.worker = i.worker)
RETURNING call_id, attempt
