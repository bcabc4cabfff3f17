-- The attempts of the calls that fill_varied_calls.sql writes and that were submitted from $1 on and before $2. Of those with
-- two, the first failed.
INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, duration_ms, class, message, output)
SELECT
    c.id, a.attempt, c.worker, c.started_at, c.finished_at, extract(epoch FROM c.finished_at - c.started_at) * 1000,
    k.class, CASE WHEN k.class IS NOT NULL THEN 'it went wrong' END,
    CASE WHEN k.class IS NULL THEN CASE WHEN c.pool = 'models'
        THEN '{"text": "done", "usage": {"input_tokens": 812, "output_tokens": 60, "cost_micros": 904}}'::json
        ELSE '{"ok": true, "booking": "CA1234"}'::json END END
FROM (
    SELECT * FROM calls
    WHERE finished_at IS NOT NULL AND attempt > 0
        AND id >= (lpad(to_hex(floor(extract(epoch FROM $1::timestamptz) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
        AND id < (lpad(to_hex(floor(extract(epoch FROM $2::timestamptz) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
    ORDER BY id
) c, LATERAL generate_series(1, c.attempt) AS a (attempt),
    LATERAL (SELECT CASE WHEN a.attempt < c.attempt THEN 'unavailable' ELSE c.class END AS class) k
