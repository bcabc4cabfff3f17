DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_dispatcher') THEN
        REVOKE SELECT ON SEQUENCE task_inbox_id_seq FROM redial_dispatcher;
    END IF;
END
$$;
