-- The tombstone of a new erasure, and the action that it is; nothing if its id is known, or if another one of the same scope is
-- not finished.
WITH begun AS (
    INSERT INTO tombstones (id, tenant, conversation, actor, cancels)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING
    RETURNING id, tenant, conversation, actor
)
INSERT INTO actions (tenant, user_name, role, door, token, verb, targets, target_count, erasure)
SELECT
    tenant, actor, $6, $7, (SELECT id FROM tokens t WHERE t.id = $9 AND t.tenant = $2 AND t.user_name = $4), $8,
    ARRAY[COALESCE(conversation, tenant)], 1, id
FROM begun
