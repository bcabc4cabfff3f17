-- What dispatchers share about NATS: its streams, bodies that do not fit into one message, and messages that could not be accepted.

-- One row: the job stream whose loss was dealt with last, so that one dispatcher publishes its jobs again, not each.
CREATE TABLE job_stream (
    only_row    boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    created_at  timestamptz NOT NULL,
    requeued_at timestamptz NOT NULL,
    done        boolean     NOT NULL DEFAULT false
);

-- One row. Why here: a stream that was wiped is created again by whichever dispatcher notices it first, also by one that was started
-- without the setting.
CREATE TABLE stream_settings (
    only_row boolean  PRIMARY KEY DEFAULT true CHECK (only_row),
    replicas smallint NOT NULL CHECK (replicas BETWEEN 1 AND 5)
);

-- Bodies that do not fit into one message, in pieces. Unlogged: what a crash of Postgres loses is sent again, or asked for again.
-- Pieces are put and dropped all the time, by whoever may send something large. What was dropped is free for others soon: the table
-- grows to about what is put in two minutes.
CREATE UNLOGGED TABLE payloads (
    owner      text        NOT NULL,
    payload    uuid        NOT NULL,
    piece      int         NOT NULL CHECK (piece >= 0),
    text       text        NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (owner, payload, piece)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 100000, toast.autovacuum_vacuum_cost_delay = 0);
CREATE INDEX payloads_expiry ON payloads (expires_at);

-- One row for each rejected message, with a list of its errors; `code` and `message` are the first one's. A row for each error would
-- keep the whole message each time.
CREATE TABLE dead_letters (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source      text        NOT NULL CHECK (source IN ('intake', 'results')),
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tenant      text,
    identity    text,
    code        text        NOT NULL,
    message     text        NOT NULL,
    error_count int         NOT NULL DEFAULT 1 CHECK (error_count > 0),
    errors      json        NOT NULL DEFAULT '[]',
    payload     bytea       NOT NULL
);
CREATE INDEX dead_letters_received ON dead_letters (received_at);
-- Only so many messages of one sender are kept: the oldest ones are found by this.
CREATE INDEX dead_letters_sender ON dead_letters (source, (COALESCE(identity, tenant, '')), id);

COMMENT ON TABLE job_stream IS 'The job stream as dispatchers last saw it, and when its jobs were last published again.';
COMMENT ON TABLE stream_settings IS 'One row, once a dispatcher was started with the setting: how streams on NATS are created.';
COMMENT ON COLUMN stream_settings.replicas IS 'Servers of the NATS cluster that keep each stream.';
COMMENT ON TABLE payloads IS 'Bodies of messages that travel in pieces, for ten minutes at most.';
COMMENT ON COLUMN payloads.owner IS 'Who may read it: a user of a tenant, or a worker identity.';
COMMENT ON COLUMN payloads.payload IS 'The body. Whoever puts it makes the id.';
COMMENT ON COLUMN payloads.piece IS 'Which piece, from 0.';
COMMENT ON COLUMN payloads.text IS 'A part of the body.';
COMMENT ON COLUMN payloads.expires_at IS 'When it is deleted, if nobody drops it before.';
COMMENT ON TABLE dead_letters IS 'Messages of the intake and result streams that could not be accepted, with the reason.';
COMMENT ON COLUMN dead_letters.tenant IS
    'The tenant in the subject of a rejected submission, or that of the calls that a rejected report names; empty if it is not known.';
COMMENT ON COLUMN dead_letters.identity IS 'The worker identity in the subject of a rejected report.';
COMMENT ON COLUMN dead_letters.error_count IS 'How many entries of the message were rejected; 1 if it could not be read at all.';
COMMENT ON COLUMN dead_letters.errors IS 'The first 100 errors: position of the entry in its batch from 0, code, message.';
