ALTER TABLE dead_letters DROP COLUMN tenant;
DROP TABLE tombstones;
