COMMENT ON TABLE actions IS NULL;
DROP INDEX actions_unfinished_erasures;
ALTER TABLE actions DROP COLUMN erasure;
DROP INDEX dead_letters_sender;
ALTER TABLE dead_letters DROP COLUMN identity;
