-- A redrive that somebody confirmed with a count runs no more calls again than that.
ALTER TABLE redrives ADD COLUMN at_most bigint CHECK (at_most > 0);
COMMENT ON COLUMN redrives.at_most IS 'It fails if more calls match, and runs no more than this again; null: any number.';
