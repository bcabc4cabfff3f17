-- Deletes up to $3 of the actions that were asked for before $1, and of those that changed nothing before $2.
WITH old AS (
    (SELECT id FROM actions WHERE effective AND at < $1 ORDER BY at LIMIT $3)
    UNION ALL
    (SELECT id FROM actions WHERE NOT effective AND at < $2 ORDER BY at LIMIT $3)
    LIMIT $3
)
DELETE FROM actions
WHERE id = ANY (ARRAY(SELECT id FROM actions WHERE id = ANY (ARRAY(SELECT id FROM old)) FOR UPDATE SKIP LOCKED))
