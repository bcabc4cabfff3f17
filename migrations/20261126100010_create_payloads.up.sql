-- Bodies that do not fit into one message, in pieces. Unlogged: what a crash of Postgres loses is sent again, or asked for again.
CREATE UNLOGGED TABLE payloads (
    owner      text        NOT NULL,
    payload    uuid        NOT NULL,
    piece      int         NOT NULL CHECK (piece >= 0),
    text       text        NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (owner, payload, piece)
);
CREATE INDEX payloads_expiry ON payloads (expires_at);

COMMENT ON TABLE payloads IS 'Bodies of messages that travel in pieces, for ten minutes at most.';
COMMENT ON COLUMN payloads.owner IS 'Who may read it: a user of a tenant, or a worker identity.';
COMMENT ON COLUMN payloads.payload IS 'The body. Whoever puts it makes the id.';
COMMENT ON COLUMN payloads.piece IS 'Which piece, from 0.';
COMMENT ON COLUMN payloads.text IS 'A part of the body.';
COMMENT ON COLUMN payloads.expires_at IS 'When it is deleted, if nobody drops it before.';
