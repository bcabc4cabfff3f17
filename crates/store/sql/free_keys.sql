-- Looks at the next $4 keys of calls behind $1 and before $2, and deletes those whose calls ended before $3 or are gone.
WITH seen AS MATERIALIZED (
    SELECT tenant, key, refused, call_id FROM call_keys WHERE call_id > $1 AND call_id < $2 ORDER BY call_id LIMIT $4
), freed AS (
    DELETE FROM call_keys k USING seen s
    WHERE k.tenant = s.tenant AND k.key = s.key AND k.refused = s.refused
        AND (SELECT c.id FROM calls c WHERE c.id = s.call_id AND (c.finished_at IS NULL OR c.finished_at >= $3)) IS NULL
)
SELECT (SELECT s.call_id FROM seen s ORDER BY s.call_id DESC LIMIT 1) AS last
