-- The last heartbeat of a worker was written after this, by the clock of the database: the worker had an answer of then. An attempt
-- whose lease had ended by then, and that a heartbeat would have renewed, is not held by its worker. `last_seen_at` cannot say
-- that: a registration sets it, too, and a copy of an old heartbeat.
ALTER TABLE workers ADD COLUMN heard_after timestamptz;
