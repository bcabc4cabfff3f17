-- Redrives that ended before a time.
WITH old AS MATERIALIZED (
    SELECT tenant, id FROM redrives WHERE finished_at < $1 ORDER BY finished_at LIMIT $2)
DELETE FROM redrives r USING old WHERE r.tenant = old.tenant AND r.id = old.id
