-- Says that this dispatcher deals with the loss of the job stream, if no other one has or does: the stream is another one
-- than the one on record, or jobs may have been lost since a time at which the last loss was dealt with already ($2 is null
-- if only the first is asked), or whoever began to deal with it did not finish.
INSERT INTO job_stream AS s (created_at, requeued_at) VALUES ($1, clock_timestamp())
ON CONFLICT (only_row) DO UPDATE
SET created_at = EXCLUDED.created_at, requeued_at = EXCLUDED.requeued_at, done = false
WHERE s.created_at <> EXCLUDED.created_at
    OR s.requeued_at < $2
    OR (NOT s.done AND s.requeued_at < EXCLUDED.requeued_at - interval '15 s')
RETURNING requeued_at
