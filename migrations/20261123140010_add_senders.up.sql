-- Who sent what could not be processed, and which action an erasure is.

-- The worker identity in the subject of a rejected message of the result stream.
ALTER TABLE dead_letters ADD COLUMN identity text;

-- Before subjects named senders, a submission without a tenant was of the tenant `default`.
UPDATE dead_letters SET tenant = 'default'
WHERE source = 'intake' AND tenant IS NULL AND position('"tenant"'::bytea IN payload) = 0;

-- Only so many messages of one sender are kept: the oldest ones are found by this.
CREATE INDEX dead_letters_sender ON dead_letters (source, (COALESCE(identity, tenant, '')), id);

-- Completed when the erasure is, in the same transaction.
ALTER TABLE actions ADD COLUMN erasure uuid;
CREATE INDEX actions_unfinished_erasures ON actions (erasure) WHERE erasure IS NOT NULL AND result IS NULL;

COMMENT ON COLUMN dead_letters.tenant IS
    'The tenant in the subject of a rejected submission, or that of the calls that a rejected report names; empty if it is not known.';
COMMENT ON COLUMN dead_letters.identity IS 'The worker identity in the subject of a rejected report.';
COMMENT ON TABLE actions IS 'What people did: cancels, redrives, erasures. Read with redial actions.';
COMMENT ON COLUMN actions.erasure IS 'The erasure that it began: the id of its tombstone.';
