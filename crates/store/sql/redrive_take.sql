-- Takes the redrive that waits longest for its next step, of any tenant: a tenant with many has no more turns than one with one.
-- Whoever takes it has so long for the step.
WITH of_tenants AS (
    SELECT DISTINCT ON (tenant) tenant, id FROM redrives
    WHERE next_at <= clock_timestamp()
    ORDER BY tenant, next_at),
due AS MATERIALIZED (
    SELECT r.tenant, r.id FROM of_tenants
    JOIN redrives r USING (tenant, id)
    WHERE r.next_at <= clock_timestamp()
    ORDER BY random()
    LIMIT 1
    FOR UPDATE OF r SKIP LOCKED)
UPDATE redrives r
SET next_at = clock_timestamp() + $2::bigint * interval '1 ms', taken_by = $1
FROM due
WHERE r.tenant = due.tenant AND r.id = due.id
RETURNING
    r.tenant, r.id, r.filter::text AS "filter!", r.dry_run, r.rate, r.state, r.pass, r.position, r.created_by, r.created_at,
    r.matched, r.redriven, r.at_most
