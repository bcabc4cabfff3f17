ALTER TABLE dead_letters DROP COLUMN error_count, DROP COLUMN errors;
