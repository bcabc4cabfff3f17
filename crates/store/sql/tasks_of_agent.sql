-- The newest $2 tasks of an agent, whoever's they are, and whether each is of tenant $3.
SELECT id, tenant = $3 AS "is_own!" FROM tasks WHERE agent = $1 ORDER BY id DESC LIMIT $2
