-- What waits until an operator accepts it, by tool and identity: perhaps only for tool $1, of identity $2; $3 rows at most. The
-- fingerprint is that of what is on record and what would replace it.
SELECT
    p.tool, p.identity, p.worker, p.since, p.reasons, p.spec::text AS "spec!",
    left(encode(sha256(convert_to(t.spec::text || E'\n' || p.spec::text, 'UTF8')), 'hex'), 40) AS "fingerprint!"
FROM pending_tools p
JOIN tools t ON t.name = p.tool
WHERE ($1::text IS NULL OR p.tool = $1) AND ($2::text IS NULL OR p.identity = $2)
ORDER BY p.tool, p.identity
LIMIT $3
