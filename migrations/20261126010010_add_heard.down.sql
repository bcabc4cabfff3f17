ALTER TABLE workers DROP COLUMN heard_after;
