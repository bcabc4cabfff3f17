-- Deletes up to $2 dead letters that arrived before $1.
DELETE FROM dead_letters
WHERE id = ANY (ARRAY(
    SELECT id FROM dead_letters WHERE received_at < $1 ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED))
