DROP INDEX calls_ended_as;
ALTER TABLE calls DROP COLUMN ended_as;
DROP INDEX attempts_worker;
