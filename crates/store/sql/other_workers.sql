-- How many workers identity $1 has besides $2, and how many of them are live; of $3 at most.
SELECT count(*) AS "all!", count(*) FILTER (WHERE live_until > clock_timestamp()) AS "live!"
FROM (SELECT live_until FROM workers WHERE regexp_replace(id, '-[^-]*$', '') = $1 AND id <> $2 LIMIT $3) w
