-- Takes the redrive that waits longest for its next step. Whoever takes it has so long for the step.
WITH due AS MATERIALIZED (
    SELECT tenant, id FROM redrives
    WHERE next_at <= clock_timestamp()
    ORDER BY next_at
    LIMIT 1
    FOR UPDATE SKIP LOCKED)
UPDATE redrives r
SET next_at = clock_timestamp() + $2::bigint * interval '1 ms', taken_by = $1
FROM due
WHERE r.tenant = due.tenant AND r.id = due.id
RETURNING
    r.tenant, r.id, r.filter::text AS "filter!", r.dry_run, r.rate, r.state, r.pass, r.position, r.created_by, r.created_at
