-- Deletes the oldest actions of user $2 and verb $3: of those that changed something what is not among the newest $4, of the
-- others what is not among the newest $5; $6 of each at most. Returns how many.
WITH surplus AS (
    (SELECT id FROM actions WHERE tenant = $1 AND user_name = $2 AND verb = $3 AND effective ORDER BY id DESC OFFSET $4 LIMIT $6)
    UNION ALL
    (SELECT id FROM actions WHERE tenant = $1 AND user_name = $2 AND verb = $3 AND NOT effective ORDER BY id DESC OFFSET $5 LIMIT $6)
), gone AS (
    DELETE FROM actions
    WHERE id = ANY (ARRAY(SELECT id FROM actions WHERE id = ANY (ARRAY(SELECT id FROM surplus)) FOR UPDATE SKIP LOCKED))
    RETURNING effective
)
SELECT count(*) FILTER (WHERE effective) AS "effective!", count(*) FILTER (WHERE NOT effective) AS "others!" FROM gone
