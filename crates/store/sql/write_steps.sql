-- Writes new steps.
INSERT INTO task_steps (task_id, n, at, input, decisions)
SELECT task_id, step, at, input::json, decisions::json
FROM UNNEST($1::uuid[], $2::int[], $3::timestamptz[], $4::text[], $5::text[]) AS i (task_id, step, at, input, decisions)
