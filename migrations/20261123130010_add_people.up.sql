-- Who submitted, and what people did.
ALTER TABLE calls ADD COLUMN submitted_by text;
ALTER TABLE tasks ADD COLUMN submitted_by text;

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
    verb text NOT NULL,
    -- What it was about: ids or names, the first hundred.
    targets text[] NOT NULL,
    -- How many there were in all.
    target_count integer NOT NULL,
    -- `done`, or the code of the error; NULL if it is not known.
    result text,
    -- How many were changed; NULL if it is not known.
    changed integer
);
-- Lists by tenant, newest first.
CREATE INDEX actions_tenant ON actions (tenant, id);

COMMENT ON TABLE actions IS 'What people did: who asked for what, when, in which role, on how many, and how it ended';
