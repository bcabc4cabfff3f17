-- Marks calls that are still ready, so that these claims for them are refused. Running calls stay as they are, and so do those of
-- tools that worker $4 does not serve: it cannot have claimed them. IS TRUE keeps the planner from looking calls up by their tool.
UPDATE calls c
SET claim_id = i.claim_id
FROM UNNEST((SELECT $1::uuid[]), $2::int[], $3::uuid[]) AS i (id, attempt, claim_id)
WHERE c.id = ANY (ARRAY[i.id]) AND c.state = 'ready' AND c.attempt = i.attempt - 1
    AND (c.tool = ANY (ARRAY(SELECT UNNEST(w.tools) FROM workers w WHERE w.id = $4))) IS TRUE
