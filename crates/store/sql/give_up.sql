-- Marks calls that are still ready, so that these claims for them are refused. Running calls stay as they are.
UPDATE calls c
SET claim_id = i.claim_id
FROM UNNEST($1::uuid[], $2::int[], $3::uuid[]) AS i (id, attempt, claim_id)
WHERE c.id = ANY (ARRAY[i.id]) AND c.state = 'ready' AND c.attempt = i.attempt - 1
