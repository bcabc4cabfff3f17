-- Due calls that this version cannot read are looked at again a little later: a dispatcher of the version that wrote them may take them
-- meanwhile, and must not find them late. At the head of the index they would be found by every sweep, and enough of them would keep
-- it from all other calls.
UPDATE calls SET wake_at = clock_timestamp() + interval '15 s' WHERE id = ANY ($1)
