-- The tasks $1 to $2 of the calls that fill_varied_calls.sql writes: one for each 50. 3 % failed, few of them for a rare reason; the
-- last ten run.
INSERT INTO tasks (
    id, tenant, conversation, agent, model, language, spec, input, state, last_step, submitted_at, submitted_by, started_at,
    finished_at, code, answer, turns, tool_calls, wake_at)
SELECT
    (lpad(to_hex(floor(extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '70008' || substr(md5(n::text), 1, 15))::uuid,
    CASE WHEN n % 1000 = 999 THEN 'tenant_small' WHEN n % 8 < 5 THEN 'default' WHEN n % 8 < 7 THEN 'tenant_0' ELSE 'tenant_1' END,
    'conversation_' || n * 5, CASE WHEN n % 2000 = 8 THEN 'agent_rare' ELSE 'agent_' || n % 7 END,
    CASE WHEN n % 10 = 0 THEN 'large' ELSE 'small' END, 'en', '{"model": "small"}', 'What is the weather in town ' || n || '?', k.state, 3, t.at,
    'user_' || n % 50, t.at, CASE WHEN k.state <> 'running' THEN t.at + interval '1 min' END,
    CASE k.state WHEN 'succeeded' THEN 'answered' WHEN 'failed' THEN
        CASE WHEN n % 33000 = 0 THEN 'time_exhausted' ELSE 'model_failed' END END,
    CASE k.state WHEN 'succeeded' THEN 'Sunny.' END, 2, 3, CASE WHEN k.state = 'running' THEN t.at + interval '1 day' END
FROM generate_series($1::bigint, $2::bigint - 1) AS n,
    LATERAL (SELECT $3::timestamptz - ($5::bigint - n * 50) * interval '1 hour' / $4::bigint AS at) t,
    LATERAL (SELECT CASE WHEN n >= $2::bigint - 10 THEN 'running' WHEN n % 33 = 0 THEN 'failed' ELSE 'succeeded' END AS state) k
