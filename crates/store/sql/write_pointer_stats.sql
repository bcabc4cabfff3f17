-- Replaces sums of an hour.
INSERT INTO pointer_stats (hour, tenant, tool, what, pointer, rule, calls)
SELECT * FROM UNNEST($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
ON CONFLICT (hour, tenant, tool, what, pointer, rule) DO UPDATE
SET calls = EXCLUDED.calls
