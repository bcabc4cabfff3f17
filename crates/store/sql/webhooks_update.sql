-- Changes a webhook; what is NULL stays. One that is enabled again begins now; one that is disabled drops what waits.
WITH changed AS (
    UPDATE webhooks
    SET url = COALESCE($3, url),
        events = COALESCE($4, events),
        tools = COALESCE($5, tools),
        agents = COALESCE($6, agents),
        since = CASE WHEN $7 = 'active' AND state = 'disabled' THEN clock_timestamp() ELSE since END,
        reason = CASE WHEN $7 = 'active' THEN NULL WHEN $7 = 'disabled' AND state = 'active' THEN $8 ELSE reason END,
        state = COALESCE($7, state),
        changed_at = clock_timestamp()
    WHERE tenant = $1 AND id = $2
    RETURNING *
), dropped AS (
    DELETE FROM webhook_events e USING changed c
    WHERE e.tenant = c.tenant AND e.webhook = c.id AND e.delivery IS NULL AND c.state = 'disabled'
)
SELECT
    id AS "id!", url AS "url!", events AS "events!", tools AS "tools!", agents AS "agents!", state AS "state!", reason,
    key_id AS "key_id!", secret_version AS "secret_version!", previous_until, created_at AS "created_at!",
    created_by AS "created_by!", changed_at AS "changed_at!", content AS "content!"
FROM changed
