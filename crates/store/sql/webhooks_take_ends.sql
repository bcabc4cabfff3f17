-- Takes up to $1 ends from the queue of webhooks; not those that another dispatcher takes.
DELETE FROM untold_ends
WHERE ctid = ANY (ARRAY(SELECT ctid FROM untold_ends LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id, is_task
