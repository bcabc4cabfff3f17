ALTER TABLE redrives DROP COLUMN at_most;
