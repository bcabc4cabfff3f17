-- How far a redrive came with a step, unless somebody else took it, or it ended meanwhile.
UPDATE redrives
SET pass = $4, position = $5, state = $6, matched = matched + $7, redriven = redriven + $8, existing = existing + $9,
    refused = refused + $10, error = $11,
    next_at = CASE WHEN $6 IN ('counting', 'running') THEN clock_timestamp() + $12::bigint * interval '1 ms' END,
    finished_at = CASE WHEN $6 IN ('counting', 'running') THEN NULL ELSE clock_timestamp() END
WHERE tenant = $1 AND id = $2 AND taken_by = $3 AND next_at IS NOT NULL
