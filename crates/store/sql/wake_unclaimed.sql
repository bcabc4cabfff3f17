-- Makes unclaimed calls due whose job was published in this time: those jobs are lost.
UPDATE calls c
SET wake_at = clock_timestamp() + $4::int * interval '1 s', published_at = to_timestamp(0)
FROM (
    SELECT id FROM calls
    WHERE wake_at IS NOT NULL AND state = 'ready' AND published_at > $1 AND published_at <= $2
    LIMIT $3 FOR UPDATE SKIP LOCKED
) lost
WHERE c.id = lost.id
