-- Calls $1 to $2 of a past of $5 calls that ends at $3, $4 an hour, with every kind of end: for the plans of questions. 64 tools, of
-- which one is rare; 4 tenants; conversations of ten calls; one call in 100 belongs to a task; 2 % failed and 1 % was refused;
-- a key for one in ten. The last 1,000 are ready.
INSERT INTO calls (
    id, state, attempt, tool, pool, effect, tenant, key, conversation, arguments, timeout_ms, notify, submitted_at, deadline_at,
    published_at, claim_id, worker, started_at, lease_until, finished_at, wake_at, class, message, task_id, turn, call_index,
    refused)
SELECT
    (lpad(to_hex(floor(extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n), 3, '0') || '8'
        || substr(md5(n::text), 1, 15))::uuid,
    k.state, CASE WHEN k.state IN ('refused', 'ready') THEN 0 WHEN n % 20 = 0 THEN 2 ELSE 1 END, k.tool, k.pool, 'read',
    CASE WHEN n % 4 = 0 THEN 'tenant_' || n / 4 % 3 ELSE 'default' END, CASE WHEN n % 10 = 0 THEN 'key ' || n END,
    'conversation ' || n / 10,
    json_build_object('city', (ARRAY['Paris', 'Oslo', 'Lima', '北京'])[1 + n % 4], 'n', n, 'text', repeat('x', 100)),
    30000, false, t.at, t.at + interval '1 day', t.at, gen_random_uuid(), 'worker-' || n / 50000 || '-' || n % 8,
    t.at + interval '5 ms', t.at + interval '15 s',
    CASE WHEN k.state <> 'ready' THEN t.at + k.total END, CASE WHEN k.state = 'ready' THEN t.at + interval '1 day' END,
    k.class, CASE WHEN k.class IS NOT NULL THEN 'it went wrong' END,
    CASE WHEN n % 100 < 2 THEN (lpad(to_hex(floor(extract(epoch FROM t.task_at) * 1000)::bigint), 12, '0') || '70008'
        || substr(md5((n / 100)::text), 1, 15))::uuid END,
    CASE WHEN n % 100 < 2 THEN 1 END, CASE WHEN n % 100 < 2 THEN n % 100 END, k.state = 'refused'
FROM generate_series($1::bigint, $2::bigint - 1) AS n,
    LATERAL (SELECT
        $3::timestamptz - ($5::bigint - n) * interval '1 hour' / $4::bigint AS at,
        $3::timestamptz - ($5::bigint - n / 100 * 100) * interval '1 hour' / $4::bigint AS task_at) t,
    LATERAL (SELECT
        CASE WHEN n >= $5::bigint - 1000 THEN 'ready' WHEN n % 100 = 7 THEN 'refused' WHEN n % 50 = 3 THEN 'failed'
            WHEN n % 10000 = 5 THEN 'unknown' ELSE 'succeeded' END AS state,
        CASE WHEN n >= $5::bigint - 1000 THEN NULL WHEN n % 100 = 7 THEN 'invalid_arguments'
            WHEN n % 5000 = 3 THEN 'auth' WHEN n % 50 = 3 THEN 'unavailable' WHEN n % 10000 = 5 THEN 'lost' END AS class,
        CASE WHEN n % 100 = 0 THEN 'model-small' WHEN n % 100000 = 11 THEN 'tool_rare' ELSE 'tool_' || n % 63 END AS tool,
        CASE WHEN n % 100 = 0 THEN 'models' ELSE 'default' END AS pool,
        (1 + (n * 7919 % 1000)) * interval '3 ms' AS total) k
