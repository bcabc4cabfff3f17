-- A redrive, unless it is on record or the tenant has too many that have not ended.
INSERT INTO redrives (tenant, id, filter, dry_run, rate, state, created_by, at_most)
SELECT $1, $2, $3::text::json, $4, $5, 'counting', $6, $8::bigint
WHERE (SELECT count(*) FROM redrives WHERE tenant = $1 AND next_at IS NOT NULL) < $7
ON CONFLICT DO NOTHING
