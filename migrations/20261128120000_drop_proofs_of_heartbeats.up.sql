-- A claim is granted until its own time only, so that heartbeats need not prove what a worker does not hold.
ALTER TABLE workers DROP COLUMN heard_after;
