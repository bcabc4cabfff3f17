DROP FUNCTION add_call_partitions, bound_kept_calls, drop_call_partition;
DROP VIEW calls_of_tasks;

-- Everything becomes one table again.
DO $$
DECLARE
    restore text[];
    parent  text;
    part    text;
    names   text;
    command text;
BEGIN
    restore := ARRAY(
        SELECT format('CREATE VIEW %I AS %s', c.relname, pg_get_viewdef(c.oid)) FROM pg_class c
        WHERE c.oid IN ('call_history'::regclass, 'attempt_history'::regclass)
        UNION ALL
        SELECT format('COMMENT ON VIEW %I IS %L', c.relname, obj_description(c.oid)) FROM pg_class c
        WHERE c.oid IN ('call_history'::regclass, 'attempt_history'::regclass)
        UNION ALL
        SELECT format('COMMENT ON COLUMN %I.%I IS %L', c.relname, a.attname, col_description(c.oid, a.attnum))
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.oid IN ('call_history'::regclass, 'attempt_history'::regclass) AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        SELECT format('COMMENT ON TABLE %I IS %L', c.relname, obj_description(c.oid)) FROM pg_class c
        WHERE c.oid IN ('calls'::regclass, 'attempts'::regclass));
    DROP VIEW call_history, attempt_history;
    FOREACH parent IN ARRAY ARRAY['calls', 'attempts'] LOOP
        SELECT string_agg(quote_ident(attname), ', ') INTO names FROM pg_attribute
        WHERE attrelid = parent::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, parent || '_kept');
        EXECUTE format('INSERT INTO %I (%s) SELECT %s FROM %I', parent || '_kept', names, names, parent);
        EXECUTE format('DROP TABLE %I', parent);
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT IF EXISTS %I', parent || '_kept', parent || '_kept_bound');
        FOR command IN
            SELECT format('ALTER INDEX %I RENAME TO %I', i.relname, parent || substr(i.relname, length(parent || '_kept') + 1))
            FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
            WHERE x.indrelid = (parent || '_kept')::regclass
        LOOP
            EXECUTE command;
        END LOOP;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', parent || '_kept', parent);
    END LOOP;
    FOREACH command IN ARRAY restore LOOP
        EXECUTE command;
    END LOOP;
END
$$;

CREATE UNIQUE INDEX calls_key
    ON calls (tenant, key, (CASE WHEN refused THEN content ELSE '00000000-0000-0000-0000-000000000000' END))
    WHERE key IS NOT NULL;
CREATE UNIQUE INDEX calls_redrive ON calls (redrive_of) WHERE redrive_of IS NOT NULL;
CREATE UNIQUE INDEX calls_task ON calls (task_id, turn, call_index) WHERE task_id IS NOT NULL;
CREATE TRIGGER ended_calls_never_change BEFORE UPDATE ON calls FOR EACH ROW
    WHEN (OLD.wake_at IS NULL) EXECUTE FUNCTION refuse_change_of_ended_call();

DROP TABLE call_partitions, call_keys, redriven_calls, task_calls;
DROP FUNCTION first_id;
