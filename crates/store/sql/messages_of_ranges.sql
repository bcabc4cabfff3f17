-- Messages of conversations, by ranges of their sequence numbers ($3 to $4), each with the number of its question ($5) and of its part
-- there ($6). Of a content that was cut only the ends are read: as many characters of its beginning as it has bytes there ($7), which are
-- as many bytes or more, and the last bytes ($8), which right() would count through all of it for. Only the lengths are looked at of a
-- question about more than $9 bytes, and of those that have no room, with those before them, in $10 bytes; to read the end of a content,
-- Postgres reads all of it.
WITH sized AS (
    SELECT
        w.n, w.part, w.head, w.tail, m.*,
        COALESCE(octet_length(m.thought), 0)::bigint + COALESCE(octet_length(m.calls::text), 0) + COALESCE(octet_length(m.provider::text), 0)
            + CASE WHEN w.tail = 0 THEN LEAST(octet_length(m.content), 4 * w.head::bigint) ELSE octet_length(m.content) END AS bytes
    FROM UNNEST($1::text[], $2::text[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[], $8::int[])
        AS w (tenant, conversation, first, last, n, part, head, tail)
    JOIN messages m ON m.tenant = w.tenant AND m.conversation = w.conversation AND m.seq BETWEEN w.first AND w.last
), summed AS (
    SELECT *, sum(bytes) OVER (PARTITION BY n) <= $9::bigint AS is_small FROM sized
), chosen AS (
    SELECT *, is_small AND sum(CASE WHEN is_small THEN bytes ELSE 0 END) OVER (ORDER BY n) <= $10::bigint AS is_read FROM summed
)
SELECT
    n AS "n!", part AS "part!", is_read AS "is_read!", seq AS "seq!", task_id AS "task!", at AS "at!", role AS "role!",
    CASE WHEN NOT is_read THEN '' WHEN head IS NULL THEN content ELSE left(content, head) END AS "content!",
    CASE
        WHEN NOT is_read OR head IS NULL THEN NULL
        WHEN tail = 0 THEN ''::bytea
        ELSE substring(convert_to(content, 'UTF8') FROM octet_length(content) - tail + 1)
    END AS "end",
    octet_length(content) AS "bytes!",
    CASE WHEN is_read THEN thought END AS thought, CASE WHEN is_read THEN calls::text END AS calls, call_id, tool, class,
    by_redial AS "by_redial!", CASE WHEN is_read THEN provider::text END AS provider
FROM chosen
