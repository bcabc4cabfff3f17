-- A redrive that somebody confirmed with a count: if more calls match by then, nothing runs again.
ALTER TABLE redrives ADD COLUMN at_most bigint CHECK (at_most > 0);
COMMENT ON COLUMN redrives.at_most IS 'It fails, and nothing runs again, if more calls match; null: any number.';
