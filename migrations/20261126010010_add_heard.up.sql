-- When a heartbeat of a worker last came. `last_seen_at` is also set by a registration, which does not say what the worker
-- holds: an attempt that a heartbeat does not name is not held.
ALTER TABLE workers ADD COLUMN heard_at timestamptz;
