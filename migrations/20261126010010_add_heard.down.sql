ALTER TABLE workers DROP COLUMN heard_at;
