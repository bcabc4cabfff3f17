-- Takes up to $2 calls from the queue of the statistics, those that lie behind $1. Only one transaction at a time does so.
DELETE FROM uncounted_calls
WHERE ctid = ANY (ARRAY(SELECT ctid FROM uncounted_calls WHERE ctid > $1::text::tid LIMIT $2))
RETURNING call_id, ctid::text AS "place!"
