-- Who may come in, what people did, and what was erased.

-- One row for each request of a person that changes something besides submissions, written before it is carried out: if the
-- dispatcher dies in between, there is a row without a result, and never a change without a row.
CREATE TABLE actions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tenant text NOT NULL,
    user_name text NOT NULL,
    role text NOT NULL,
    -- The way in, such as nats. NATS does not tell dispatchers an address.
    door text NOT NULL,
    address text,
    -- The token that a gateway was shown, if it is one of this user.
    token text,
    verb text NOT NULL,
    -- What it was about: ids or names, the first hundred.
    targets text[] NOT NULL,
    -- How many there were in all.
    target_count integer NOT NULL,
    -- `done`, or the code of the error; NULL if it is not known.
    result text,
    -- How many were changed; NULL if it is not known.
    changed integer,
    -- The erasure that it began. Completed when the erasure is, in the same transaction.
    erasure uuid,
    -- Those that changed something are kept longer than the others, which anybody can ask for without end.
    effective boolean NOT NULL GENERATED ALWAYS AS (result IS NULL OR (result = 'done' AND changed IS DISTINCT FROM 0)) STORED
);
-- Lists by tenant, newest first.
CREATE INDEX actions_tenant ON actions (tenant, id);
CREATE INDEX actions_unfinished_erasures ON actions (erasure) WHERE erasure IS NOT NULL AND result IS NULL;
-- The oldest of a user and verb are found by this.
CREATE INDEX actions_kept ON actions (tenant, user_name, verb, effective, id);
-- The oldest of all are found by this.
CREATE INDEX actions_old ON actions (effective, at);

COMMENT ON TABLE actions IS 'What people did: cancels, redrives, erasures. Read with redial actions.';
COMMENT ON COLUMN actions.erasure IS 'The erasure that it began: the id of its tombstone.';
COMMENT ON COLUMN actions.effective IS 'Whether it changed something, or may have.';

-- Tokens of programs that come over HTTP.
--
-- Why it has this shape:
-- * The id is made by whoever asks for the token, so a request whose reply was lost is sent again and finds its own row.
-- * Of the secret there is only its SHA-256. It has 256 random bits, so nothing can be found from the hash.
-- * A token stands for a user in some roles. What the user may do now is in the access file and not here.
-- * What ended is kept for a while, so that the list says why a token is refused.
-- * Whoever stole a token may have created others with it: those are found by `parent`, and revoked with it. A parent is kept for as
--   long as one of them is. No foreign key: erasing a tenant deletes its tokens, and those that its operators created elsewhere stay.
CREATE TABLE tokens (
    id           text        PRIMARY KEY CHECK (id ~ '^[a-z2-7]{12}$'),
    tenant       text        NOT NULL,
    user_name    text        NOT NULL,
    roles        text[]      NOT NULL CHECK (cardinality(roles) > 0),
    sha256       bytea       NOT NULL CHECK (octet_length(sha256) = 32),
    label        text        NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by   text        NOT NULL,
    parent       text,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    last_used_at timestamptz
);
-- Lists, newest first.
CREATE INDEX tokens_tenant ON tokens (tenant, created_at, id);
-- What was created with a token is found by this.
CREATE INDEX tokens_parent ON tokens (parent) WHERE parent IS NOT NULL;
-- What ended long ago is found by this. LEAST leaves out what is NULL.
CREATE INDEX tokens_ended ON tokens (LEAST(expires_at, revoked_at)) WHERE LEAST(expires_at, revoked_at) IS NOT NULL;

COMMENT ON TABLE tokens IS 'Tokens for HTTP: whom each stands for, in which roles, and until when; listed by redial token list';
COMMENT ON COLUMN tokens.id IS 'The part of the token that is no secret.';
COMMENT ON COLUMN tokens.sha256 IS 'SHA-256 of the part that is.';
COMMENT ON COLUMN tokens.created_by IS 'Who asked for it: tenant, a dot, user.';
COMMENT ON COLUMN tokens.parent IS 'The token that asked for it; empty if none did.';
COMMENT ON COLUMN tokens.expires_at IS 'When it ends; empty if it does not.';
COMMENT ON COLUMN tokens.revoked_by IS 'Who revoked it, like created_by.';
COMMENT ON COLUMN tokens.last_used_at IS 'When a gateway last accepted it, about; empty: never.';

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

-- What gateways seal page tokens with, so that each reads those of all others. It is no secret of a tenant: a token only says
-- where a list goes on, and every list is within the tenant that asks.
CREATE TABLE page_key (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    key      bytea   NOT NULL
);
INSERT INTO page_key (key)
VALUES (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));

COMMENT ON TABLE page_key IS 'One row: what gateways seal page tokens with.';

-- The roles of deploy/roles.sql, which does the same, get new tables by default. Whoever may only read learns no hashes, and cannot make
-- page tokens.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_reader') THEN
        REVOKE ALL ON tokens, sessions, page_key FROM redial_reader;
        GRANT SELECT (id, tenant, user_name, roles, label, created_at, created_by, parent, expires_at, revoked_at, revoked_by,
                      last_used_at)
            ON tokens TO redial_reader;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_gateway') THEN
        GRANT SELECT, UPDATE (last_used_at) ON tokens TO redial_gateway;
        GRANT SELECT, INSERT, DELETE, UPDATE (token) ON sessions TO redial_gateway;
        GRANT SELECT ON page_key TO redial_gateway;
    END IF;
END
$$;

-- Erasures: what was asked to be forgotten, how far that is, and afterwards that it happened. No content of what was erased.
--
-- Why it has this shape:
-- * One row for each erasure. It is written before anything is deleted, and every transaction that deletes also writes here
--   how far it came. Any dispatcher takes the next step when it is due (`next_at`), so whatever dies, it is finished and counts once.
-- * The id is made by whoever asks, so a request that is sent again continues the same erasure.
-- * Only what was submitted before `until_at` is erased. Until then no task of the scope starts (`holds_starts`), because a
--   model must not be shown half a conversation.
-- * No index of `calls` leads with the tenant, because each index costs every submission. The calls of a tenant are found by
--   a walk along the primary key, in bounded steps; `position` is how far it came.

CREATE TABLE tombstones (
    id            uuid        PRIMARY KEY,
    tenant        text        NOT NULL,
    conversation  text,
    actor         text        NOT NULL,
    cancels       boolean     NOT NULL,
    begun_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    until_at      timestamptz,
    next_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    erased_at     timestamptz,
    phase         text        NOT NULL DEFAULT 'open' CHECK (phase IN ('open', 'letters', 'tasks', 'calls', 'statistics',
                                                                       'last_letters', 'done')),
    holds_starts  boolean     NOT NULL GENERATED ALWAYS AS (phase IN ('open', 'letters', 'tasks')) STORED,
    position      text,
    first_at      timestamptz,
    last_at       timestamptz,
    counts        json,
    CHECK ((erased_at IS NULL) = (phase <> 'done')),
    CHECK (phase = 'open' OR until_at IS NOT NULL)
);

-- At most one unfinished erasure of each scope. Also what a start and a redrive look at: a few rows, or none.
CREATE UNIQUE INDEX tombstones_unfinished ON tombstones (tenant, (COALESCE(conversation, '')), ((conversation IS NULL)))
    WHERE erased_at IS NULL;
CREATE INDEX tombstones_erased ON tombstones (erased_at) WHERE erased_at IS NOT NULL;

COMMENT ON TABLE tombstones IS 'Erasures of conversations and tenants: that and when something was erased, and by whom. Listed by redial forget --list.';
COMMENT ON COLUMN tombstones.conversation IS 'The conversation; empty if the whole tenant was erased.';
COMMENT ON COLUMN tombstones.actor IS 'Who asked for it.';
COMMENT ON COLUMN tombstones.cancels IS 'Work that has not ended is cancelled first.';
COMMENT ON COLUMN tombstones.begun_at IS 'When it was asked for.';
COMMENT ON COLUMN tombstones.until_at IS 'What was submitted until then is erased.';
COMMENT ON COLUMN tombstones.next_at IS 'When its next step is due; whoever takes it has so long for it.';
COMMENT ON COLUMN tombstones.position IS 'How far its phase is: a dead letter, a conversation, a call, or an hour of statistics.';
COMMENT ON COLUMN tombstones.erased_at IS 'When the last of it was deleted; empty while it is under way.';
COMMENT ON COLUMN tombstones.first_at IS 'When the oldest task or call that was erased had been submitted.';
COMMENT ON COLUMN tombstones.last_at IS 'When the newest task or call that was erased had been submitted.';
COMMENT ON COLUMN tombstones.counts IS 'Numbers of what was erased; empty if nothing was.';
