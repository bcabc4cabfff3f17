-- How many consumers of pool $1 the workers of identity $3 use, but for worker $4, which is about to choose one; and whether
-- workers of another identity use one. What precedes the last `-` of a worker's id is its identity.
SELECT
    count(DISTINCT u.consumer) FILTER (WHERE u.identity = $3) AS "own!",
    COALESCE(bool_or(u.identity <> $3), false) AS "has_others!"
FROM (
    SELECT c.name AS consumer, regexp_replace(w.id, '-[^-]*$', '') AS identity
    FROM consumers c
    JOIN workers w ON c.name = ANY (w.consumers)
    WHERE c.pool = $1 AND w.id <> $4
        AND (w.last_seen_at > clock_timestamp() - $2::bigint * interval '1 ms' OR w.live_until > clock_timestamp())
) u
