-- What gateways seal page tokens with, so that each reads those of all others. It is no secret of a tenant: a token only says
-- where a list goes on, and every list is within the tenant that asks.
CREATE TABLE page_key (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    key      bytea   NOT NULL
);
INSERT INTO page_key (key)
VALUES (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));

COMMENT ON TABLE page_key IS 'One row: what gateways seal page tokens with.';

-- The roles of deploy/roles.sql, which does the same, get new tables by default. Whoever may only read cannot make page tokens.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_reader') THEN
        REVOKE ALL ON page_key FROM redial_reader;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_gateway') THEN
        GRANT SELECT ON page_key TO redial_gateway;
    END IF;
END
$$;
