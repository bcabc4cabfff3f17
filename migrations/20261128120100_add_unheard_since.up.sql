-- An attempt of an unsafe tool goes on although its lease has ended: its record says since when its worker was not heard.
CREATE OR REPLACE VIEW attempt_history AS
SELECT a.call_id AS call, a.attempt, c.tool, a.worker, a.started_at, a.ended_at, a.duration_ms,
       CASE WHEN a.class IS NULL THEN 'succeeded' ELSE 'failed' END AS outcome,
       a.class, a.message, a.details, a.retry_at, a.output, NULL::timestamptz AS unheard_since
FROM attempts a
JOIN calls c ON c.id = a.call_id
UNION ALL
SELECT c.id, c.attempt, c.tool, c.worker, c.started_at, NULL, NULL, 'running', NULL, NULL, NULL, NULL, NULL,
       CASE WHEN c.lease_until < clock_timestamp() THEN c.lease_until END
FROM calls c
WHERE c.state = 'running' AND c.wake_at IS NOT NULL;

COMMENT ON COLUMN attempt_history.unheard_since IS 'Of a running attempt whose worker is silent: when its lease ended.';
