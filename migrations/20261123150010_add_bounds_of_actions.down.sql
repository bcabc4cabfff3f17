DROP INDEX actions_old;
DROP INDEX actions_kept;
ALTER TABLE actions DROP COLUMN effective;
