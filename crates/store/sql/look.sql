-- The next calls along one index, newest first, and which of them match a filter. The first conditions lead along the index
-- ($1 to $8; one of them is set, and none for the primary key), within bounds of ids; at most $12 calls are read. The others
-- are compared afterwards, so a step costs the same however few calls match. Only calls of the tenant count as looked at.
-- Agent and user of a call's task are read as scalars: an EXISTS could be planned as a hash of all tasks.
WITH looked AS MATERIALIZED (
    SELECT
        c.id, c.submitted_at, c.finished_at, c.tenant, c.tool, c.state, c.class, c.conversation, c.key, c.task_id, c.effect,
        c.submitted_by
    FROM calls c
    WHERE ($1::text IS NULL OR c.id = ANY (ARRAY(SELECT k.call_id FROM call_keys k WHERE k.tenant = $13 AND k.key = $1)))
        AND ($2::uuid IS NULL OR c.id = ANY (ARRAY(SELECT o.call_id FROM task_calls o WHERE o.task_id = $2)))
        AND ($3::uuid[] IS NULL OR c.id = ANY ($3))
        AND ($4::text IS NULL OR c.conversation = $4)
        AND ($5::text IS NULL OR c.class = $5)
        AND ($6::text IS NULL OR c.ended_as = $6)
        AND ($7::text IS NULL OR c.tenant = $7)
        AND ($8::text IS NULL OR c.tool = $8)
        AND ($9::uuid IS NULL OR c.id < $9)
        AND ($10::uuid IS NULL OR c.id >= $10)
        AND ($11::uuid IS NULL OR c.id < $11)
    ORDER BY c.id DESC
    LIMIT $12)
SELECT
    id AS "call!", submitted_at AS "submitted_at!", tenant = $13 AS "is_own!",
    round(extract(epoch FROM (finished_at - submitted_at)) * 1000)::bigint AS total_ms,
    COALESCE(tenant = $13
        AND ($14::text IS NULL OR tool = $14)
        AND ($15::text IS NULL OR state = $15)
        AND ($16::text IS NULL OR class = $16)
        AND ($17::timestamptz IS NULL OR submitted_at >= $17)
        AND ($18::timestamptz IS NULL OR submitted_at < $18)
        AND ($19::text IS NULL OR conversation = $19)
        AND ($20::text IS NULL OR key = $20)
        AND ($21::uuid IS NULL OR task_id = $21)
        AND tool <> ALL ($22::text[])
        AND state <> ALL ($23::text[])
        AND (class IS NULL OR class <> ALL ($24::text[]))
        AND ($25::text IS NULL OR effect = $25)
        AND effect <> ALL ($26::text[])
        AND ($27::text IS NULL
            OR COALESCE(submitted_by, (SELECT t.submitted_by FROM tasks t WHERE t.id = l.task_id)) = $27)
        AND ($28::text IS NULL OR (SELECT t.agent FROM tasks t WHERE t.id = l.task_id) = $28)
        AND ($29::text[] = '{}' OR COALESCE((SELECT t.agent FROM tasks t WHERE t.id = l.task_id), '') <> ALL ($29)),
        false) AS "matches!"
FROM looked l
ORDER BY id DESC
