-- How many actions are kept, and for how long: those that changed something longer than the others, which anybody can ask for
-- without end.
ALTER TABLE actions ADD COLUMN effective boolean NOT NULL
    GENERATED ALWAYS AS (result IS NULL OR (result = 'done' AND changed IS DISTINCT FROM 0)) STORED;

-- The oldest of a user and verb are found by this.
CREATE INDEX actions_kept ON actions (tenant, user_name, verb, effective, id);
-- The oldest of all are found by this.
CREATE INDEX actions_old ON actions (effective, at);

COMMENT ON COLUMN actions.effective IS 'Whether it changed something, or may have.';
