-- Deletes up to $2 late reports that arrived before $1. They have no key.
DELETE FROM late_reports
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM late_reports WHERE received_at < $1 ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED))
