-- Due calls that this version cannot read are looked at again in an hour. At the head of the index they would be found by
-- every sweep, and enough of them would keep it from all other calls.
UPDATE calls SET wake_at = clock_timestamp() + interval '1 hour' WHERE id = ANY ($1)
