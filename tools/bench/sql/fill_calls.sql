-- Calls $1 to $2 of a past that begins at $3, one for each ms, all ended: for the benchmark.
INSERT INTO calls (
    id, state, attempt, tool, pool, effect, tenant, arguments, timeout_ms, notify, submitted_at, deadline_at,
    published_at, claim_id, worker, started_at, lease_until, finished_at)
SELECT
    (lpad(to_hex(floor(extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '70008' || substr(md5(n::text), 1, 15))::uuid,
    'succeeded', 1, 'echo', 'echo', 'read', 'default', $4::json, 30000, false, t.at, t.at + interval '1 day',
    t.at, gen_random_uuid(), 'bench-of-the-past-0123456789ab', t.at + interval '5 ms', t.at + interval '15 s',
    t.at + interval '9 ms'
FROM generate_series($1::bigint, $2::bigint - 1) AS n,
    LATERAL (SELECT $3::timestamptz + n * interval '1 ms' AS at) t
