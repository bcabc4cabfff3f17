-- Dispatchers read which item of the inboxes was the last one (low-water marks of looks for what is due).
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_dispatcher') THEN
        GRANT SELECT ON SEQUENCE task_inbox_id_seq TO redial_dispatcher;
    END IF;
END
$$;
