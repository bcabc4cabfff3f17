-- An erasure of a tenant deletes its tokens, too.
ALTER TABLE tombstones ADD COLUMN tokens bigint NOT NULL DEFAULT 0;

COMMENT ON COLUMN tombstones.tokens IS 'Tokens for HTTP of an erased tenant.';
