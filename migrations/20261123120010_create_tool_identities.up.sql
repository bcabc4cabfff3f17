-- Which worker identities may serve a tool. The first one that registers a tool may; any other one waits until it is accepted.
-- Tools that were registered before this have no row: the first identity that registers one of them again gets it.
CREATE TABLE tool_identities (
    tool          text        NOT NULL,
    identity      text        NOT NULL,
    accepted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The specification that an operator accepted last from this identity; NULL: none. It is never asked about again.
    accepted_spec json,
    PRIMARY KEY (tool, identity)
);
COMMENT ON TABLE tool_identities IS 'The worker identities that may serve each tool.';
