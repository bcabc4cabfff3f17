-- The newest part of conversations: as much of each as its reach says (redial_records::Reach; the engine's view::read says
-- the same in Rust), with the last system message and the user's newest one if they are older. The walk visits messages
-- newest first through the primary key and looks only at their lengths; the contents of what is too old are never touched.
-- Together they may take $9 bytes, those that take least first; for one that there is no room for there is one row without
-- a message, unless it is the first of the batch and $10. A conversation without messages has no row.
WITH RECURSIVE walk AS (
    SELECT i.n, i.tenant, i.conversation, i.shown_bytes, i.stored_bytes, i.message_bytes, i.result_bytes, i.old_bytes,
        string_to_array(i.hidden, ',') AS hidden, 2147483647 AS seq, false AS at_end, false AS has_result,
        0::bigint AS shown, 0::bigint AS full_size, 0::bigint AS stored, 0::bigint AS taken, 0 AS head, 0 AS tail
    FROM UNNEST($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::int[], $6::int[], $7::int[], $8::text[])
        WITH ORDINALITY AS i (
            tenant, conversation, shown_bytes, stored_bytes, message_bytes, result_bytes, old_bytes, hidden, n)
    UNION ALL
    SELECT w.n, w.tenant, w.conversation, w.shown_bytes, w.stored_bytes, w.message_bytes, w.result_bytes, w.old_bytes, w.hidden, m.seq,
        w.at_end OR m.role = 'user' OR (m.role = 'assistant' AND (w.has_result OR m.says)),
        m.role = 'tool' AND (w.has_result OR NOT m.is_hidden),
        w.shown + s.shown, w.full_size + s.full_size, w.stored + s.stored,
        w.taken + m.others + LEAST(m.content, 2 * COALESCE(s.head, m.content)),
        s.head, CASE WHEN s.head = w.result_bytes AND NOT s.is_old THEN w.result_bytes / 3 ELSE 0 END
    FROM walk w
    CROSS JOIN LATERAL (
        SELECT x.seq, x.role, octet_length(x.content)::bigint AS content,
            COALESCE(octet_length(x.thought), 0)::bigint + COALESCE(octet_length(x.provider::text), 0) AS beside,
            COALESCE(octet_length(x.thought), 0)::bigint + COALESCE(octet_length(x.provider::text), 0)
                + COALESCE(octet_length(x.calls::text), 0) AS others,
            x.role = 'tool' AND x.call_id = ANY (w.hidden) AS is_hidden,
            x.role = 'assistant' AND btrim(x.content, E' \n\r\t') <> '' AS says
        FROM messages x
        WHERE x.tenant = w.tenant AND x.conversation = w.conversation AND x.seq < w.seq
        ORDER BY x.seq DESC LIMIT 1
    ) m
    CROSS JOIN LATERAL (
        SELECT m.content + m.others + w.message_bytes AS stored,
            CASE
                WHEN m.role = 'tool' AND NOT m.is_hidden THEN LEAST(m.content, w.old_bytes) + w.message_bytes
                WHEN m.role = 'user' OR m.says THEN m.content + m.beside + w.message_bytes
                ELSE 0
            END AS shown,
            CASE
                WHEN m.role = 'tool' AND NOT m.is_hidden THEN LEAST(m.content, w.result_bytes) + w.message_bytes
                WHEN m.role = 'user' OR m.says THEN m.content + m.beside + w.message_bytes
                ELSE 0
            END AS full_size
    ) c
    CROSS JOIN LATERAL (
        SELECT c.stored, c.shown, c.full_size, w.at_end AND w.full_size + c.full_size > w.shown_bytes AS is_old
    ) o
    CROSS JOIN LATERAL (
        SELECT o.*,
            CASE
                WHEN m.role <> 'tool' THEN NULL
                WHEN m.is_hidden THEN 0
                WHEN o.is_old THEN w.old_bytes
                ELSE w.result_bytes
            END AS head
    ) s
    WHERE NOT w.at_end OR (w.shown + s.shown <= w.shown_bytes AND w.stored + s.stored <= w.stored_bytes)
), sizes AS (
    SELECT w.*, min(seq) OVER of_one AS first, max(taken) OVER of_one AS total
    FROM walk w
    WHERE seq < 2147483647
    WINDOW of_one AS (PARTITION BY n)
), chosen AS (
    SELECT *, (n = 1 AND $10::boolean) OR sum(CASE WHEN seq = first THEN total ELSE 0 END) OVER (ORDER BY total, n) <= $9::bigint AS is_read
    FROM sizes
), wanted AS (
    SELECT n, tenant, conversation, first, is_read, seq, head, tail FROM chosen WHERE is_read OR seq = first
    UNION ALL
    SELECT c.n, c.tenant, c.conversation, c.first, true, x.seq, NULL, 0
    FROM chosen c
    CROSS JOIN LATERAL (
        (SELECT seq FROM messages
        WHERE tenant = c.tenant AND conversation = c.conversation AND role = 'system'
        ORDER BY seq DESC LIMIT 1)
        UNION ALL
        (SELECT seq FROM messages
        WHERE tenant = c.tenant AND conversation = c.conversation AND role = 'user' AND NOT by_redial
        ORDER BY seq DESC LIMIT 1)
    ) x
    WHERE c.is_read AND c.seq = c.first AND x.seq < c.first
)
SELECT w.n AS "n!", w.first AS "first!", m.seq AS "seq?", m.task_id AS "task_id?", m.at AS "at?", m.role AS "role?",
    CASE WHEN octet_length(m.content) > 2 * w.head THEN left(m.content, w.head) ELSE m.content END AS content,
    CASE WHEN octet_length(m.content) > 2 * w.head THEN right(m.content, w.tail) END AS tail,
    octet_length(m.content) AS bytes,
    m.thought AS "thought?", m.calls::text, m.call_id AS "call_id?", m.tool AS "tool?", m.class AS "class?",
    m.by_redial AS "by_redial?", m.provider::text
FROM wanted w
LEFT JOIN LATERAL (
    SELECT * FROM messages WHERE w.is_read AND tenant = w.tenant AND conversation = w.conversation AND seq = w.seq OFFSET 0
) m ON true
ORDER BY w.n, w.seq
