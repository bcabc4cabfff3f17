-- The tasks $1 to $2 of the calls that fill_varied_calls.sql writes: one for each 100. 3 % failed; the last ten run.
INSERT INTO tasks (
    id, tenant, conversation, agent, model, language, spec, input, state, submitted_at, started_at, finished_at, code, answer,
    turns, tool_calls, wake_at)
SELECT
    (lpad(to_hex(floor(extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '70008' || substr(md5(n::text), 1, 15))::uuid,
    'default', 'conversation ' || n * 10, 'agent_' || n % 7, 'small', 'en', '{}', 'What is the weather?', k.state, t.at, t.at,
    CASE WHEN k.state <> 'running' THEN t.at + interval '1 min' END,
    CASE k.state WHEN 'succeeded' THEN 'answered' WHEN 'failed' THEN 'model_failed' END,
    CASE k.state WHEN 'succeeded' THEN 'Sunny.' END, 1, 1, CASE WHEN k.state = 'running' THEN t.at + interval '1 day' END
FROM generate_series($1::bigint, $2::bigint - 1) AS n,
    LATERAL (SELECT $3::timestamptz - ($5::bigint - n * 100) * interval '1 hour' / $4::bigint AS at) t,
    LATERAL (SELECT CASE WHEN n >= $2::bigint - 10 THEN 'running' WHEN n % 33 = 0 THEN 'failed' ELSE 'succeeded' END AS state) k
