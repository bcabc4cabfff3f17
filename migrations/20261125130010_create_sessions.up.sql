-- Sessions of browsers that signed in with a token.
--
-- Why it has this shape:
-- * A browser keeps the id of a session and no token. Of the id there is only its SHA-256 here, as of tokens.
-- * A session is what its token is: it ends with it, and is deleted with it.
-- * A gateway writes it itself, so that people can sign in while no dispatcher runs. A token has 20 at most; a new one deletes what is
--   beyond, and what has ended. So nothing else has to delete them.
CREATE TABLE sessions (
    sha256     bytea       PRIMARY KEY CHECK (octet_length(sha256) = 32),
    token      text        NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_token ON sessions (token, created_at);

COMMENT ON TABLE sessions IS 'Browsers that signed in with a token.';
COMMENT ON COLUMN sessions.sha256 IS 'SHA-256 of the id that the browser keeps.';
COMMENT ON COLUMN sessions.token IS 'The id of its token.';

-- As deploy/roles.sql. Whoever may only read learns no hashes.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_reader') THEN
        REVOKE ALL ON sessions FROM redial_reader;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_gateway') THEN
        GRANT SELECT, INSERT, DELETE, UPDATE (token) ON sessions TO redial_gateway;
    END IF;
END
$$;
