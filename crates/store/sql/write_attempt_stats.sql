-- Replaces sums of an hour.
INSERT INTO attempt_stats (hour, tenant, worker, tool, attempts, failed, durations)
SELECT hour, tenant, worker, tool, attempts, failed, durations::int[]
FROM UNNEST($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[])
    AS i (hour, tenant, worker, tool, attempts, failed, durations)
ON CONFLICT (hour, tenant, worker, tool) DO UPDATE
SET attempts = EXCLUDED.attempts, failed = EXCLUDED.failed, durations = EXCLUDED.durations
