-- Dropping a partition holds everybody up for as long as it moves what is needed, so this is bounded in bytes, too, and decided before
-- anything is locked. What is kept is validated once for a partition, and not once for each try to drop it. The signatures stay as they
-- were: a dispatcher of before goes on.

-- What is still needed of a partition: calls that have not ended, or not before `cutoff`, and those of tasks that are on record. NULL if
-- these are more than `most`, or they and their attempts take more than 100 MiB. None of a partition that is not there. Locks nothing.
CREATE FUNCTION needed_calls(which int, cutoff timestamptz, most int) RETURNS uuid[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    most_bytes CONSTANT numeric := 100 * 1024 * 1024;
    part       call_partitions;
    needed     uuid[];
    parent     text;
    sizes      text;
    bytes      numeric;
    all_bytes  numeric := 0;
BEGIN
    SELECT * INTO part FROM call_partitions WHERE number > 0 AND number = which;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
    -- Each part is limited by itself, or all of each would be read for the union.
    EXECUTE format('SELECT ARRAY(
            (SELECT id FROM %1$I WHERE wake_at IS NOT NULL AND num_nonnulls(backlog_at) >= 0 LIMIT $4)
            UNION (SELECT id FROM %1$I WHERE finished_at >= $1 LIMIT $4)
            UNION (SELECT DISTINCT call_id FROM task_calls WHERE call_id >= first_id($2) AND call_id < first_id($3) LIMIT $4))',
            'calls_' || which)
        INTO needed USING cutoff, part.from_at, part.to_at, most + 1;
    IF cardinality(needed) > most THEN
        RETURN NULL;
    END IF;
    FOREACH parent IN ARRAY ARRAY['calls', 'attempts'] LOOP
        -- Of each column by itself: the size of a whole row would fetch what is stored apart.
        SELECT string_agg(format('COALESCE(pg_column_size(%I), 0)', attname), '::bigint + ') INTO sizes FROM pg_attribute
        WHERE attrelid = parent::regclass AND attnum > 0 AND NOT attisdropped;
        EXECUTE format('SELECT COALESCE(sum(%s), 0) FROM %I WHERE %I = ANY ($1)', sizes, parent || '_' || which,
            CASE parent WHEN 'calls' THEN 'id' ELSE 'call_id' END) INTO bytes USING needed;
        all_bytes := all_bytes + bytes;
    END LOOP;
    RETURN CASE WHEN all_bytes <= most_bytes THEN needed END;
END
$$;

-- Says ahead of drop_call_partition, and without keeping anybody from working, that what is kept lies below the end of this partition,
-- or that would be checked while everything waits. Two statements in two transactions: the second one reads the whole table, unless that
-- was done for this partition before.
CREATE OR REPLACE FUNCTION bound_kept_calls(which int, validate boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    bound uuid := (SELECT first_id(to_at) FROM call_partitions WHERE number > 0 AND number = which);
    made  int;
    valid int;
BEGIN
    SELECT count(*), count(*) FILTER (WHERE convalidated) INTO made, valid FROM pg_constraint
    WHERE conrelid IN ('calls_kept'::regclass, 'attempts_kept'::regclass)
        AND conname IN ('calls_kept_bound', 'attempts_kept_bound')
        AND position(bound::text IN pg_get_constraintdef(oid)) > 0;
    IF bound IS NULL OR valid = 2 THEN
        RETURN;
    ELSIF validate THEN
        ALTER TABLE calls_kept VALIDATE CONSTRAINT calls_kept_bound;
        ALTER TABLE attempts_kept VALIDATE CONSTRAINT attempts_kept_bound;
    ELSIF made < 2 THEN
        EXECUTE format('ALTER TABLE calls_kept DROP CONSTRAINT IF EXISTS calls_kept_bound,
                            ADD CONSTRAINT calls_kept_bound CHECK (id < %L) NOT VALID', bound);
        EXECUTE format('ALTER TABLE attempts_kept DROP CONSTRAINT IF EXISTS attempts_kept_bound,
                            ADD CONSTRAINT attempts_kept_bound CHECK (call_id < %L) NOT VALID', bound);
    END IF;
END
$$;

-- Drops the oldest partition, after what is still needed of it (needed_calls) was moved to what is kept. Returns how many calls were
-- moved; NULL, and nothing changed, if that would be too much. Everything waits while they are moved, for as long as the caller's
-- statement_timeout at most; and it waits for everybody for as long as the caller's lock_timeout, while others wait for it.
CREATE OR REPLACE FUNCTION drop_call_partition(which int, cutoff timestamptz, most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    part   call_partitions;
    needed uuid[];
    parent text;
    names  text;
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
    needed := needed_calls(which, cutoff, most);
    IF needed IS NULL THEN
        RETURN NULL;
    END IF;
    LOCK TABLE calls, attempts IN ACCESS EXCLUSIVE MODE;
    -- What was opened or ended meanwhile. A union, because a dispatcher's connection does without the joins that would be fast here.
    EXECUTE format('SELECT ARRAY(SELECT unnest($2)
            UNION SELECT id FROM %1$I WHERE wake_at IS NOT NULL AND num_nonnulls(backlog_at) >= 0
            UNION SELECT id FROM %1$I WHERE finished_at >= $1)', 'calls_' || which)
        INTO needed USING cutoff, needed;
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

REVOKE EXECUTE ON FUNCTION needed_calls FROM PUBLIC;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_dispatcher') THEN
        GRANT EXECUTE ON FUNCTION needed_calls TO redial_dispatcher;
    END IF;
END
$$;
