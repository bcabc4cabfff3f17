-- Deletes the oldest redrives of a tenant that have ended, beyond the newest $2.
WITH old AS MATERIALIZED (
    SELECT tenant, id FROM redrives
    WHERE tenant = $1 AND finished_at IS NOT NULL
    ORDER BY created_at DESC, id DESC
    OFFSET $2)
DELETE FROM redrives r USING old WHERE r.tenant = old.tenant AND r.id = old.id
