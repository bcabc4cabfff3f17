-- Tools on record, the identities that may serve them, and what was accepted last from identity $2. Their rows are locked.
SELECT
    t.name, t.spec::text AS "spec!",
    ARRAY(SELECT identity FROM tool_identities WHERE tool = t.name ORDER BY identity) AS "identities!",
    (SELECT accepted_spec::text FROM tool_identities WHERE tool = t.name AND identity = $2) AS accepted
FROM tools t
WHERE t.name = ANY ($1)
ORDER BY t.name
