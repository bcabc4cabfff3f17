-- The keys of the varied history's calls, and the places of those of tasks.
INSERT INTO call_keys (tenant, key, refused, call_id)
SELECT tenant, key, CASE WHEN state = 'refused' THEN COALESCE(content, id) ELSE '00000000-0000-0000-0000-000000000000' END, id
FROM calls WHERE key IS NOT NULL;
INSERT INTO task_calls (task_id, turn, call_index, call_id)
SELECT task_id, turn, call_index, id FROM calls WHERE task_id IS NOT NULL
