-- The attempts of the calls that fill_calls.sql writes.
INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, duration_ms, output)
SELECT
    (lpad(to_hex(floor(extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '70008' || substr(md5(n::text), 1, 15))::uuid,
    1, 'bench-of-the-past-0123456789ab', t.at + interval '5 ms', t.at + interval '9 ms', 0, $4::json
FROM generate_series($1::bigint, $2::bigint - 1) AS n,
    LATERAL (SELECT $3::timestamptz + n * interval '1 ms' AS at) t
