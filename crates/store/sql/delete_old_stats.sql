-- Deletes up to $3 rows of each kind $1 of hours before $2.
WITH old AS MATERIALIZED (
    SELECT o.* FROM UNNEST($1::text[], $2::timestamptz[]) AS k (of, before)
    CROSS JOIN LATERAL (
        SELECT kind, hour, tenant, tool, a, b, c FROM stats
        WHERE kind = k.of AND hour < k.before ORDER BY hour LIMIT $3 FOR UPDATE SKIP LOCKED) AS o
)
DELETE FROM stats AS s USING old AS o
WHERE (s.kind, s.hour, s.tenant, s.tool, s.a, s.b, s.c) = (o.kind, o.hour, o.tenant, o.tool, o.a, o.b, o.c)
