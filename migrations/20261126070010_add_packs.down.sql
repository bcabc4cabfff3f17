ALTER TABLE workers DROP COLUMN takes_packs;
