-- Which of these grants a worker still holds, whether or not their calls are locked.
SELECT c.id AS "id!", c.attempt AS "attempt!", c.claim_id AS "claim_id!", c.cancel_requested AS "cancel_requested!"
FROM UNNEST((SELECT $1::uuid[]), $2::int[], $3::uuid[]) AS i (id, attempt, claim_id), calls c
WHERE c.id = ANY (ARRAY[i.id])
    AND c.state = 'running' AND c.attempt = i.attempt AND c.claim_id = i.claim_id AND c.worker = $4
