-- Removes a tool that no live worker has. Workers that have it and were not heard of for a lease are removed, too: should one
-- live after all, its next heartbeat makes it register again. Their other tools remember when they were last served. What is
-- known of the tool's health is removed, too, and who may serve it: another tool of the name starts without a history.
WITH gone AS (
    DELETE FROM workers WHERE $1 = ANY (tools) AND live_until <= clock_timestamp()
    RETURNING tools, last_seen_at
), remembered AS (
    UPDATE tools t
    SET last_served_at = GREATEST(t.last_served_at, seen.at)
    FROM (SELECT name, max(last_seen_at) AS at FROM gone CROSS JOIN UNNEST(gone.tools) AS g (name) GROUP BY name) seen
    WHERE t.name = seen.name AND t.name <> $1
), removed AS (
    DELETE FROM tools WHERE name = $1
), healthy AS (
    DELETE FROM retry_budgets WHERE tool = $1
), pinned AS (
    DELETE FROM tool_identities WHERE tool = $1
), pending AS (
    DELETE FROM pending_tools WHERE tool = $1
)
SELECT count(*) AS "waiting!" FROM calls WHERE tool = $1 AND backlog_at IS NOT NULL
