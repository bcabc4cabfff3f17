-- A heartbeat of the worker was written after this, by the clock of the database, and named all that the worker held. An attempt
-- that it did not name, and whose lease had ended by then, is not held. `last_seen_at` cannot say that: a registration sets it, too,
-- and a copy of an old heartbeat.
ALTER TABLE workers ADD COLUMN heard_after timestamptz;
