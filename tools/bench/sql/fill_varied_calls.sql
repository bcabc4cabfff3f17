-- Calls $1 to $2 of a past of $5 calls that ends at $3, $4 an hour, with every kind of end: for the plans of questions. 40 tools, of
-- which one is rare, and two of models; 4 tenants, one of which has a call in 1,000; conversations of ten calls; of 50 calls the
-- first five belong to a task, which asked its model twice; 8 % did not succeed, of all error classes, a few of them rare; a key
-- for one in ten. The last 1,000 are ready.
INSERT INTO calls (
    id, state, attempt, tool, pool, effect, tenant, key, conversation, arguments, timeout_ms, notify, submitted_at, submitted_by,
    deadline_at, published_at, claim_id, worker, started_at, lease_until, finished_at, wake_at, class, message, task_id, turn,
    call_index, details)
SELECT
    (lpad(to_hex(floor(extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8'
        || substr(md5(n::text), 1, 15))::uuid,
    e.state, CASE WHEN e.state IN ('refused', 'ready') THEN 0 WHEN e.class = 'unavailable' THEN 3 WHEN n % 20 = 0 THEN 2 ELSE 1 END,
    k.tool, CASE WHEN k.is_turn THEN 'models' ELSE 'default' END,
    CASE WHEN k.is_turn THEN 'read' ELSE (ARRAY['read', 'idempotent', 'keyed', 'unsafe'])[1 + n % 4] END,
    CASE WHEN n / 50 % 1000 = 999 THEN 'tenant_small' WHEN n / 50 % 8 < 5 THEN 'default' WHEN n / 50 % 8 < 7 THEN 'tenant_0'
        ELSE 'tenant_1' END,
    CASE WHEN n % 10 = 0 THEN 'key_' || n END, 'conversation_' || n / 10,
    json_build_object('city', (ARRAY['Paris', 'Oslo', 'Lima', '北京'])[1 + n % 4], 'n', n, 'text', repeat('x', 100)),
    30000, false, t.at, CASE WHEN NOT k.of_task THEN 'user_' || n % 50 END, t.at + interval '1 day', t.at, gen_random_uuid(),
    'worker-' || n / 50000 || '-' || n % 8, t.at + interval '5 ms', t.at + interval '15 s',
    CASE WHEN e.state <> 'ready' THEN t.at + k.total END, CASE WHEN e.state = 'ready' THEN t.at + interval '1 day' END,
    e.class, CASE WHEN e.class IS NOT NULL THEN 'it went wrong' END,
    CASE WHEN k.of_task THEN (lpad(to_hex(floor(extract(epoch FROM t.task_at) * 1000)::bigint), 12, '0') || '70008'
        || substr(md5((n / 50)::text), 1, 15))::uuid END,
    CASE WHEN k.of_task THEN 1 + n % 50 / 4 END, CASE WHEN k.of_task THEN n % 50 % 4 END,
    CASE WHEN e.class = 'invalid_arguments' THEN json_build_array(json_build_object(
        'path', (ARRAY['/date', '/city', '/n'])[1 + n % 3], 'rule', 'format', 'allowed', 'YYYY-MM-DD')) END
FROM generate_series($1::bigint, $2::bigint - 1) AS n,
    LATERAL (SELECT
        $3::timestamptz - ($5::bigint - n) * interval '1 hour' / $4::bigint AS at,
        $3::timestamptz - ($5::bigint - n / 50 * 50) * interval '1 hour' / $4::bigint AS task_at) t,
    -- Kinds of ends in a thousand calls, in no order.
    LATERAL (SELECT CASE WHEN n >= $5::bigint - 1000 THEN 999 ELSE n * 7919 % 1000 END AS end_of) h,
    LATERAL (SELECT
        n % 50 < 5 AS of_task, n % 50 IN (0, 4) AS is_turn,
        CASE WHEN n % 50 IN (0, 4) THEN CASE WHEN n / 50 % 10 = 0 THEN 'model-large' ELSE 'model-small' END
            WHEN n % 100000 = 11 THEN 'tool_rare' ELSE 'tool_' || n * 31 % 39 END AS tool,
        (1 + (n * 7919 % 1000)) * interval '3 ms' AS total) k,
    LATERAL (SELECT
        CASE WHEN n >= $5::bigint - 1000 THEN 'ready' WHEN h.end_of >= 80 THEN 'succeeded' WHEN h.end_of < 10 THEN 'refused'
            WHEN h.end_of < 15 THEN 'cancelled' WHEN h.end_of = 15 THEN 'unknown' ELSE 'failed' END AS state,
        CASE WHEN h.end_of >= 80 THEN NULL WHEN h.end_of < 10 THEN 'invalid_arguments' WHEN h.end_of < 15 THEN 'cancelled'
            WHEN h.end_of = 15 THEN 'lost' WHEN h.end_of = 16 AND n / 1000 % 100 = 0 THEN 'auth'
            WHEN h.end_of < 18 THEN (ARRAY['malformed_arguments', 'repeated_call', 'unanswered', 'configuration', 'output_invalid',
                'output_too_large', 'rejected', 'budget_exhausted', 'internal'])[1 + n / 1000 % 9]
            WHEN h.end_of < 25 THEN 'rate_limited' WHEN h.end_of < 40 THEN 'timeout' WHEN h.end_of < 55 THEN 'business_rule'
            WHEN h.end_of < 65 THEN 'tool_failed' ELSE 'unavailable' END AS class) e
