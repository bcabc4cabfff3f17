-- Which of these jobs, that workers gave back, are to be published again: those of calls that are ready, were published to this
-- consumer, and do not wait in the backlog. What was published less than a second ago only if $5 says so: then its worker was granted
-- something, and so cannot give the same jobs back again and again. `published_at` follows, because jobs of a consumer are claimed about
-- in its order; within a second it is left as it is, which spares a fast worker the write.
WITH found AS (
    SELECT c.id, i.attempt, c.published_at < t.now - interval '1 s' AS is_old
    FROM UNNEST((SELECT $1::uuid[]), $2::int[], $3::text[], $4::text[], $5::bool[]) AS i (id, attempt, tool, consumer, at_once), calls c,
        (SELECT clock_timestamp() AS now) t
    WHERE c.id = ANY (ARRAY[i.id])
        AND c.state = 'ready' AND c.attempt = i.attempt - 1 AND (c.tool = i.tool) IS TRUE AND (c.consumer = i.consumer) IS TRUE
        AND c.backlog_at IS NULL AND (i.at_once OR c.published_at < t.now - interval '1 s')
), published AS (
    UPDATE calls c SET published_at = clock_timestamp()
    FROM found f
    WHERE c.id = ANY (ARRAY[f.id]) AND f.is_old AND c.state = 'ready' AND c.backlog_at IS NULL
)
SELECT id AS "id!", attempt AS "attempt!" FROM found
