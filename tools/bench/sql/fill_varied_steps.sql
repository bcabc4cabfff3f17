-- Three steps and six messages of each task that fill_varied_tasks.sql wrote.
WITH steps AS (
    INSERT INTO task_steps (task_id, n, at, input, decisions)
    SELECT t.id, s.n, t.submitted_at + s.n * interval '1 s', s.input::json, s.decisions::json
    FROM tasks t, (VALUES
        (1, '{"event": "started", "first_seq": 1, "system": false}',
            '[{"decision": "message", "seq": 1}, {"decision": "turn", "turn": 1, "model": "small", "last": false}]'),
        (2, '{"event": "turn_ended", "turn": 1, "call": "01a1f813-c80f-740d-a05c-89d86eeddd01"}',
            '[{"decision": "message", "seq": 2}, {"decision": "run", "turn": 1, "call_index": 1, "id": "c1", "tool": "tool_1"}]'),
        (3, '{"event": "call_ended", "turn": 1, "call_index": 1, "call": "01a1f813-c80f-740d-a05c-89d86eeddd01"}',
            '[{"decision": "message", "seq": 3}, {"decision": "turn", "turn": 2, "model": "small", "last": false}]')
    ) AS s (n, input, decisions))
INSERT INTO messages (tenant, conversation, seq, task_id, at, role, content, call_id, tool)
SELECT t.tenant, t.conversation, m.seq, t.id, t.submitted_at + m.seq * interval '1 s', m.role, m.content, m.call_id,
    CASE WHEN m.role = 'tool' THEN 'tool_' || m.seq END
FROM tasks t, (VALUES
    (1, 'user', 'What is the weather?', NULL), (2, 'assistant', '', NULL), (3, 'tool', '{"sky": "clear"}', 'c1'),
    (4, 'tool', '{"sky": "clear"}', 'c2'), (5, 'tool', '{"sky": "clear"}', 'c3'), (6, 'assistant', 'Sunny.', NULL)
) AS m (seq, role, content, call_id)
