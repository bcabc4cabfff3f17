-- Takes up to $1 ends from the queue of webhooks, those that lie behind $2; not those that another dispatcher takes.
DELETE FROM untold_ends
WHERE ctid = ANY (ARRAY(SELECT ctid FROM untold_ends WHERE ctid > $2::text::tid LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id, is_task, ctid::text AS "place!"
