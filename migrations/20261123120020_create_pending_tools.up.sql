-- What worker identities registered and may not serve before it is accepted: the last specification of each.
CREATE TABLE pending_tools (
    tool     text        NOT NULL,
    identity text        NOT NULL,
    spec     json        NOT NULL,
    reasons  text[]      NOT NULL,
    worker   text        NOT NULL,
    since    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tool, identity)
);
-- The oldest go once there are too many.
CREATE INDEX pending_tools_since ON pending_tools (since);
COMMENT ON TABLE pending_tools IS 'What worker identities registered, and what waits for redial tools accept.';
