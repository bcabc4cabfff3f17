-- The tombstone of a new erasure; nothing if its id is known, or if another one of the same scope is not finished.
INSERT INTO tombstones (id, tenant, conversation, actor, cancels)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING
