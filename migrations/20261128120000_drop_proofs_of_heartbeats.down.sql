ALTER TABLE workers ADD COLUMN heard_after timestamptz;
