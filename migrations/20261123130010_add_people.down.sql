DROP TABLE actions;
ALTER TABLE tasks DROP COLUMN submitted_by;
ALTER TABLE calls DROP COLUMN submitted_by;
