-- Tokens of programs that come over HTTP.
--
-- Why it has this shape:
-- * The id is made by whoever asks for the token, so a request whose reply was lost is sent again and finds its own row.
-- * Of the secret there is only its SHA-256. It has 256 random bits, so nothing can be found from the hash.
-- * A token stands for a user in some roles. What the user may do now is in the access file and not here.
-- * What ended is kept for a while, so that the list says why a token is refused.
CREATE TABLE tokens (
    id           text        PRIMARY KEY CHECK (id ~ '^[a-z2-7]{12}$'),
    tenant       text        NOT NULL,
    user_name    text        NOT NULL,
    roles        text[]      NOT NULL CHECK (cardinality(roles) > 0),
    sha256       bytea       NOT NULL CHECK (octet_length(sha256) = 32),
    label        text        NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by   text        NOT NULL,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    last_used_at timestamptz
);
-- Lists, newest first.
CREATE INDEX tokens_tenant ON tokens (tenant, created_at, id);
-- What ended long ago is found by this. LEAST leaves out what is NULL.
CREATE INDEX tokens_ended ON tokens (LEAST(expires_at, revoked_at)) WHERE LEAST(expires_at, revoked_at) IS NOT NULL;

COMMENT ON TABLE tokens IS 'Tokens for HTTP: whom each stands for, in which roles, and until when; listed by redial token list';
COMMENT ON COLUMN tokens.id IS 'The part of the token that is no secret.';
COMMENT ON COLUMN tokens.sha256 IS 'SHA-256 of the part that is.';
COMMENT ON COLUMN tokens.created_by IS 'Who asked for it: tenant, a dot, user.';
COMMENT ON COLUMN tokens.expires_at IS 'When it ends; empty if it does not.';
COMMENT ON COLUMN tokens.revoked_by IS 'Who revoked it, like created_by.';
COMMENT ON COLUMN tokens.last_used_at IS 'When a gateway last accepted it, about; empty: never.';

-- The roles of deploy/roles.sql, which does the same, get new tables by default. Whoever may only read learns no hashes.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_reader') THEN
        REVOKE ALL ON tokens FROM redial_reader;
        GRANT SELECT (id, tenant, user_name, roles, label, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at)
            ON tokens TO redial_reader;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_gateway') THEN
        GRANT SELECT, UPDATE (last_used_at) ON tokens TO redial_gateway;
    END IF;
END
$$;
