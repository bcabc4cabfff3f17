-- Those of these calls that are on record. They stay locked until the commit, so that none is deleted meanwhile; in order, so that
-- two that lock several never wait for one another.
SELECT id, tenant, attempt, worker FROM calls WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE
