-- Takes back grants of which the record knows nothing, because their commits were lost with a primary. Like claims, only of tools that
-- the worker has registered and its identity may serve; the registration may be lost, too. When an attempt began is not known: on record
-- it begins now. Locked calls are left out. `takes_back` of the engine is the same rule in Rust; a test compares the two.
WITH lost AS MATERIALIZED (
    SELECT i.id, i.attempt, i.claim_id, i.worker, w.id IS NOT NULL AS is_registered,
        t.tool IS NULL OR COALESCE(c.tool <> ALL (w.tools), false) AS is_refused
    FROM UNNEST((SELECT $1::uuid[]), $2::int[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[])
            AS i (id, attempt, claim_id, worker, identity, held_at)
    CROSS JOIN calls c
    LEFT JOIN workers w ON w.id = i.worker
    LEFT JOIN tool_identities t ON t.tool = c.tool AND t.identity = i.identity
    WHERE c.id = ANY (ARRAY[i.id])
        AND c.state = 'ready' AND c.attempt = i.attempt - 1 AND c.claim_id IS DISTINCT FROM i.claim_id
        AND (c.started_at IS NULL OR i.held_at > c.started_at)
        AND c.effect IN ('read', 'idempotent', 'keyed', 'unsafe')
), free AS MATERIALIZED (
    SELECT c.id, l.attempt, l.claim_id, l.worker
    FROM lost l, calls c
    WHERE l.is_registered AND NOT l.is_refused AND c.id = ANY (ARRAY[l.id])
        AND c.state = 'ready' AND c.attempt = l.attempt - 1 AND c.claim_id IS DISTINCT FROM l.claim_id
    FOR NO KEY UPDATE OF c SKIP LOCKED
), taken AS (
    UPDATE calls c
    SET state = 'running',
        attempt = free.attempt,
        claim_id = free.claim_id,
        worker = free.worker,
        started_at = t.now,
        lease_until = t.now + $7::bigint * interval '1 ms',
        wake_at = LEAST(c.wake_at, t.now + $7::bigint * interval '1 ms'),
        backlog_at = NULL
    FROM free, (SELECT clock_timestamp() AS now) t
    WHERE c.id = ANY (ARRAY[free.id])
    RETURNING c.id, c.claim_id
)
SELECT l.id AS "id!", l.attempt AS "attempt!", l.claim_id AS "claim_id!", l.is_refused AS "is_refused!",
    EXISTS (SELECT FROM taken t WHERE t.id = l.id AND t.claim_id = l.claim_id) AS "is_taken!"
FROM lost l
