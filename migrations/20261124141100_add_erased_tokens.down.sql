ALTER TABLE tombstones DROP COLUMN tokens;
