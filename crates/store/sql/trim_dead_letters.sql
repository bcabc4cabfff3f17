-- Deletes the oldest dead letters of these senders: what is not among the newest $3 of a sender, or not within its newest $4
-- bytes. $5 more of each are looked at, so that a statement is bounded; the next one goes on.
DELETE FROM dead_letters
WHERE id = ANY (ARRAY(
    SELECT d.id
    FROM dead_letters d
    WHERE d.id = ANY (ARRAY(
        SELECT counted.id
        FROM UNNEST($1::text[], $2::text[]) AS s (source, sender)
        CROSS JOIN LATERAL (
            SELECT
                newest.id, row_number() OVER (ORDER BY newest.id DESC) AS letters,
                sum(newest.bytes) OVER (ORDER BY newest.id DESC) AS bytes
            FROM (
                SELECT l.id, octet_length(l.payload) AS bytes
                FROM dead_letters l
                WHERE l.source = s.source AND COALESCE(l.identity, l.tenant, '') = s.sender
                ORDER BY l.id DESC
                LIMIT $3::bigint + $5::bigint
            ) newest
        ) counted
        WHERE counted.letters > $3::bigint OR counted.bytes > $4::bigint))
    FOR UPDATE SKIP LOCKED))
