-- The oldest pending changes beyond $1.
DELETE FROM pending_tools
WHERE (tool, identity) IN (SELECT tool, identity FROM pending_tools ORDER BY since DESC, tool, identity OFFSET $1)
