-- A new webhook, unless the tenant has one with this id, or too many.
INSERT INTO webhooks (tenant, id, created_by, content, url, events, tools, agents, key_id)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
WHERE (SELECT count(*) FROM webhooks WHERE tenant = $1) < $10
ON CONFLICT DO NOTHING
