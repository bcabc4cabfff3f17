-- Of the tools $1 of worker $3, with specifications in other messages: those that its identity $2 may serve and that do not
-- wait, and those that wait.
SELECT
    i.tool AS "tool!",
    i.tool = ANY (COALESCE((SELECT waiting FROM workers WHERE id = $3), '{}')) AS "waits!"
FROM UNNEST($1::text[]) AS i (tool)
WHERE EXISTS (SELECT FROM tool_identities p WHERE p.tool = i.tool AND p.identity = $2)
    OR i.tool = ANY (COALESCE((SELECT waiting FROM workers WHERE id = $3), '{}'))
