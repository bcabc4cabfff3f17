-- The functions as they were.
-- Says ahead of drop_call_partition, and without keeping anybody from working, that what is kept lies below the end of this partition,
-- or that would be checked while everything waits. Two statements in two transactions: the second one reads the whole table.
CREATE OR REPLACE FUNCTION bound_kept_calls(which int, validate boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    bound uuid := (SELECT first_id(to_at) FROM call_partitions WHERE number > 0 AND number = which);
BEGIN
    IF bound IS NULL THEN
        RETURN;
    ELSIF validate THEN
        ALTER TABLE calls_kept VALIDATE CONSTRAINT calls_kept_bound;
        ALTER TABLE attempts_kept VALIDATE CONSTRAINT attempts_kept_bound;
    ELSE
        EXECUTE format('ALTER TABLE calls_kept DROP CONSTRAINT IF EXISTS calls_kept_bound,
                            ADD CONSTRAINT calls_kept_bound CHECK (id < %L) NOT VALID', bound);
        EXECUTE format('ALTER TABLE attempts_kept DROP CONSTRAINT IF EXISTS attempts_kept_bound,
                            ADD CONSTRAINT attempts_kept_bound CHECK (call_id < %L) NOT VALID', bound);
    END IF;
END
$$;

-- Drops the oldest partition, after what is still needed of it was moved to what is kept: calls that have not ended, or not before
-- `cutoff`, and those of tasks that are on record. Returns how many were moved; NULL, and nothing changed, if more than `most`
-- would have to be. Everything waits while they are moved, so they are counted before; and it waits for everybody for as long as
-- the caller's lock_timeout, while others wait for it.
CREATE OR REPLACE FUNCTION drop_call_partition(which int, cutoff timestamptz, most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    part   call_partitions;
    needed uuid[];
    parent text;
    names  text;
    is_open text := format('SELECT id FROM %1$I WHERE wake_at IS NOT NULL AND num_nonnulls(backlog_at) >= 0
        UNION SELECT id FROM %1$I WHERE finished_at >= $1', 'calls_' || which);
BEGIN
    LOCK TABLE call_partitions IN SHARE ROW EXCLUSIVE MODE;
    IF which <= 0 OR which NOT IN (SELECT number FROM call_partitions) THEN
        -- Another dispatcher has dropped it.
        RETURN 0;
    END IF;
    SELECT * INTO STRICT part FROM call_partitions WHERE number > 0 ORDER BY number LIMIT 1;
    IF part.number <> which OR part.to_at > cutoff - interval '10 minutes' OR cutoff > clock_timestamp() THEN
        RAISE EXCEPTION 'partition % is not the oldest one (%), or did not end before %', which, part.number, cutoff
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    EXECUTE format('SELECT ARRAY(SELECT id FROM (%s UNION
            SELECT call_id FROM task_calls WHERE call_id >= first_id($2) AND call_id < first_id($3)) n LIMIT $4)', is_open)
        INTO needed USING cutoff, part.from_at, part.to_at, most + 1;
    IF cardinality(needed) > most THEN
        RETURN NULL;
    END IF;
    LOCK TABLE calls, attempts IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('SELECT $2 || ARRAY(SELECT id FROM (%s) n WHERE id <> ALL ($2))', is_open) INTO needed USING cutoff, needed;
    FOREACH parent IN ARRAY ARRAY['calls', 'attempts'] LOOP
        SELECT string_agg(quote_ident(attname), ', ') INTO names FROM pg_attribute
        WHERE attrelid = parent::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, parent || '_' || which);
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, parent || '_kept');
        EXECUTE format('INSERT INTO %I (%s) SELECT %s FROM %I WHERE %I = ANY ($1)', parent || '_kept', names, names,
            parent || '_' || which, CASE parent WHEN 'calls' THEN 'id' ELSE 'call_id' END) USING needed;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)',
            parent, parent || '_kept', first_id(part.to_at));
        EXECUTE format('DROP TABLE %I', parent || '_' || which);
    END LOOP;
    DELETE FROM call_partitions WHERE number = which;
    UPDATE call_partitions SET to_at = part.to_at WHERE number = 0;
    RETURN cardinality(needed);
END
$$;

DROP FUNCTION needed_calls;
