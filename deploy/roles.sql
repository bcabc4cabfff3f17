-- Roles of the database, each with what it needs: run as a superuser in Redial's database, before the first
-- `redial migrate` or later. It may be repeated. Passwords are set afterwards (deploy/roles.sh):
--
--   redial_owner       redial migrate: owns the tables
--   redial_dispatcher  dispatchers: read and write rows; cannot create, change, empty or drop tables, but for partitions of calls
--                      that are ahead of time or too old, by functions of the database
--   redial_reader      operators and dashboards: read everything but the hashes of tokens, sessions and the key of page tokens, write nothing
--   redial_gateway     gateways: read everything, write nothing but when tokens were used, and sessions of browsers

DO $$
DECLARE
    name text;
    command text;
BEGIN
    FOREACH name IN ARRAY ARRAY['redial_owner', 'redial_dispatcher', 'redial_reader', 'redial_gateway'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', name);
        END IF;
    END LOOP;
    -- Without temporary tables, which everyone may create by default.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO redial_owner, redial_dispatcher, redial_reader, redial_gateway',
                   current_database());
    -- Tables, views and functions that another role created before.
    FOR command IN
        SELECT format('ALTER TABLE public.%I OWNER TO redial_owner', relname)
        FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
            AND relowner <> 'redial_owner'::regrole
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO redial_owner', oid::regprocedure)
        FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND proowner <> 'redial_owner'::regrole
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

-- Nobody needs large objects, which every login may create by default, also a reader.
DO $$
DECLARE
    name regprocedure;
BEGIN
    FOR name IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'pg_catalog'::regnamespace
            AND (proname LIKE 'lo\_%' OR proname IN ('loread', 'lowrite'))
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', name);
    END LOOP;
END
$$;

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CREATE, USAGE ON SCHEMA public TO redial_owner;
GRANT USAGE ON SCHEMA public TO redial_dispatcher, redial_reader, redial_gateway;

-- Tables that are there, and those of later migrations.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO redial_dispatcher;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO redial_reader, redial_gateway;
ALTER DEFAULT PRIVILEGES FOR ROLE redial_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO redial_dispatcher;
ALTER DEFAULT PRIVILEGES FOR ROLE redial_owner IN SCHEMA public
    GRANT SELECT ON TABLES TO redial_reader, redial_gateway;

-- The migrations that create the tables do the same.
DO $$
BEGIN
    IF to_regclass('public.tokens') IS NOT NULL THEN
        REVOKE ALL ON tokens FROM redial_reader;
        GRANT SELECT (id, tenant, user_name, roles, label, created_at, created_by, parent, expires_at, revoked_at, revoked_by,
                      last_used_at)
            ON tokens TO redial_reader;
        GRANT UPDATE (last_used_at) ON tokens TO redial_gateway;
    END IF;
    IF to_regclass('public.sessions') IS NOT NULL THEN
        REVOKE ALL ON sessions FROM redial_reader;
        GRANT INSERT, DELETE, UPDATE (token) ON sessions TO redial_gateway;
    END IF;
    IF to_regclass('public.call_partitions') IS NOT NULL THEN
        GRANT EXECUTE ON FUNCTION add_call_partitions, needed_calls, drop_call_partition TO redial_dispatcher;
        GRANT SELECT ON SEQUENCE task_inbox_id_seq TO redial_dispatcher;
    END IF;
    IF to_regclass('public.page_key') IS NOT NULL THEN
        REVOKE ALL ON page_key FROM redial_reader;
    END IF;
END
$$;

ALTER ROLE redial_owner SET lock_timeout = '10s';
ALTER ROLE redial_reader SET default_transaction_read_only = on;

-- What each session of Redial asks for when it begins (crates/store/src/connect.rs says why). PgBouncer and poolers like it pass
-- that on to nobody; through them the role must have it.
ALTER ROLE redial_dispatcher SET idle_in_transaction_session_timeout = '15s';
ALTER ROLE redial_dispatcher SET jit = off;
ALTER ROLE redial_dispatcher SET statement_timeout = '8s';
ALTER ROLE redial_dispatcher SET lock_timeout = '4s';
ALTER ROLE redial_dispatcher SET enable_seqscan = off;
ALTER ROLE redial_dispatcher SET enable_hashjoin = off;
ALTER ROLE redial_dispatcher SET enable_mergejoin = off;
ALTER ROLE redial_dispatcher SET enable_bitmapscan = off;
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['redial_reader', 'redial_gateway'] LOOP
        EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = ''15s''', name);
        EXECUTE format('ALTER ROLE %I SET jit = off', name);
        EXECUTE format('ALTER ROLE %I SET statement_timeout = ''110s''', name);
        EXECUTE format('ALTER ROLE %I SET lock_timeout = ''4s''', name);
        EXECUTE format('ALTER ROLE %I SET plan_cache_mode = force_custom_plan', name);
        EXECUTE format('ALTER ROLE %I SET client_connection_check_interval = ''1s''', name);
    END LOOP;
END
$$;
