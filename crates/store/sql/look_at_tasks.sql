-- The next tasks along one index, newest first, and which of them match a filter. The first conditions lead along the index ($1 to
-- $5; one of them is set), within bounds of ids; at most $9 tasks are read. The others are compared afterwards. Only tasks of the
-- tenant count as looked at. Inputs are read last, and only of tasks that match otherwise.
WITH looked AS MATERIALIZED (
    SELECT t.id, t.tenant, t.submitted_at, t.conversation, t.state, t.agent, t.model, t.code, t.submitted_by
    FROM tasks t
    WHERE ($1::uuid[] IS NULL OR t.id = ANY ($1))
        AND ($2::text IS NULL OR (t.tenant = $10 AND t.conversation = $2))
        AND ($3::text IS NULL OR (t.state = $3 AND t.state IN ('failed', 'cancelled')))
        AND ($4::text IS NULL OR t.agent = $4)
        AND ($5::text IS NULL OR t.tenant = $5)
        AND ($6::uuid IS NULL OR t.id < $6)
        AND ($7::uuid IS NULL OR t.id >= $7)
        AND ($8::uuid IS NULL OR t.id < $8)
    ORDER BY t.id DESC
    LIMIT $9)
SELECT
    id AS "task!", submitted_at AS "submitted_at!", tenant = $10 AS "is_own!",
    COALESCE(tenant = $10
        AND ($11::text IS NULL OR conversation = $11)
        AND ($12::text IS NULL OR state = $12)
        AND ($13::text IS NULL OR agent = $13)
        AND ($14::text IS NULL OR model = $14)
        AND ($15::text IS NULL OR code = $15)
        AND ($16::text IS NULL OR submitted_by = $16)
        AND ($17::timestamptz IS NULL OR submitted_at >= $17)
        AND ($18::timestamptz IS NULL OR submitted_at < $18)
        AND state <> ALL ($19::text[])
        AND (agent IS NULL OR agent <> ALL ($20::text[]))
        AND ($21::text IS NULL OR (SELECT strpos(t.input, $21) > 0 FROM tasks t WHERE t.id = l.id)),
        false) AS "matches!"
FROM looked l
ORDER BY id DESC
