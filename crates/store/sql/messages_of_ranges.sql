-- Messages of conversations, by ranges of their sequence numbers ($3 to $4) with the number of their question ($5).
SELECT
    w.n AS "n!", m.seq, m.task_id AS task, m.at, m.role, m.content, m.thought, m.calls::text AS calls, m.call_id, m.tool, m.class,
    m.by_redial, m.provider::text AS provider
FROM UNNEST($1::text[], $2::text[], $3::int[], $4::int[], $5::int[]) AS w (tenant, conversation, first, last, n)
JOIN messages m ON m.tenant = w.tenant AND m.conversation = w.conversation AND m.seq BETWEEN w.first AND w.last
