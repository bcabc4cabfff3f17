DROP VIEW attempt_history;
CREATE VIEW attempt_history AS
SELECT a.call_id AS call, a.attempt, c.tool, a.worker, a.started_at, a.ended_at, a.duration_ms,
       CASE WHEN a.class IS NULL THEN 'succeeded' ELSE 'failed' END AS outcome,
       a.class, a.message, a.details, a.retry_at, a.output
FROM attempts a
JOIN calls c ON c.id = a.call_id
UNION ALL
SELECT c.id, c.attempt, c.tool, c.worker, c.started_at, NULL, NULL, 'running', NULL, NULL, NULL, NULL, NULL
FROM calls c
WHERE c.state = 'running' AND c.wake_at IS NOT NULL;
