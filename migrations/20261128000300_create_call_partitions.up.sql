-- History by time: `calls` and `attempts` are partitioned by ranges of ids, which begin with the time at which they were made.
--
-- Why it has this shape:
-- * What is written now goes to one partition, whose indexes stay as small as the time that it spans. Old calls cost nothing but
--   space, and retention drops their tables instead of deleting their rows.
-- * A partition is made apart and attached: that keeps nobody from reading or writing. Dispatchers do so ahead of time
--   (add_call_partitions). There is no default partition: attaching another one would lock and scan it.
-- * The oldest partition (`calls_kept`, `attempts_kept`) has no lower bound. What is still needed of a partition that is dropped moves
--   there (drop_call_partition): calls that have not ended, and those of conversations that go on.
-- * A dozen partitions or two: a statement looks into each that its ids do not exclude (measured with 200 claims: 0.8 ms with one
--   table, 0.95 ms with 14 partitions, 1.3 ms with 60).
-- * Dispatchers may not create or drop tables; the functions below do just that for them, with the rights of the tables' owner.

-- The smallest id of a time: version 7 UUIDs begin with 48 bits of Unix time in ms (RFC 9562, section 5.7).
CREATE FUNCTION first_id(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$$;

CREATE TABLE call_partitions (
    number  int         PRIMARY KEY,
    from_at timestamptz NOT NULL,
    to_at   timestamptz NOT NULL
);

-- Makes partitions until the last one ends later than `ahead` from now, each for `width` (an hour at least); returns how many. One
-- dispatcher at a time does so, and the others find them made.
CREATE FUNCTION add_call_partitions(ahead interval, width interval) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    last   call_partitions;
    until  timestamptz;
    parent text;
    name   text;
    made   int := 0;
BEGIN
    LOCK TABLE call_partitions IN SHARE ROW EXCLUSIVE MODE;
    LOOP
        SELECT * INTO STRICT last FROM call_partitions ORDER BY number DESC LIMIT 1;
        EXIT WHEN last.to_at > clock_timestamp() + ahead;
        -- The next full hour.
        until := GREATEST(last.to_at, clock_timestamp()) + GREATEST(width, interval '1 hour');
        until := date_trunc('hour', until - interval '1 microsecond') + interval '1 hour';
        FOREACH parent IN ARRAY ARRAY['calls', 'attempts'] LOOP
            name := parent || '_' || (last.number + 1);
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED) WITH (%s)',
                name, parent, CASE parent
                    WHEN 'calls' THEN 'fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1'
                    ELSE 'fillfactor = 100' END);
            EXECUTE format('COMMENT ON TABLE %I IS %L', name, 'A partition of ' || parent || ', of the time in call_partitions.');
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                parent, name, first_id(last.to_at), first_id(until));
        END LOOP;
        INSERT INTO call_partitions VALUES (last.number + 1, last.to_at, until);
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;

-- What is still needed of a partition: calls that have not ended, or not before `cutoff`, those of tasks that are on record, and the
-- redrives of these, because a call is redriven once. NULL if these are more than `most`, or they and their attempts take more than
-- 100 MiB: dropping a partition holds everybody up for as long as it moves what is needed, so this is decided before anything is locked.
-- None of a partition that is not there. Locks nothing.
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
            UNION (SELECT DISTINCT call_id FROM task_calls WHERE call_id >= first_id($2) AND call_id < first_id($3) LIMIT $4)
            UNION (SELECT r.redriven_as FROM redriven_calls r
                WHERE r.redriven_as >= first_id($2) AND r.redriven_as < first_id($3) AND (
                    SELECT t.call_id FROM task_calls t
                    WHERE t.call_id = (SELECT c.origin_id FROM %1$I c WHERE c.id = r.redriven_as) LIMIT 1) IS NOT NULL
                LIMIT $4))',
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
CREATE FUNCTION bound_kept_calls(which int, validate boolean) RETURNS void
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
CREATE FUNCTION drop_call_partition(which int, cutoff timestamptz, most int) RETURNS int
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

-- Functions may be called by everyone unless that is forbidden.
REVOKE EXECUTE ON FUNCTION add_call_partitions, needed_calls, bound_kept_calls, drop_call_partition FROM PUBLIC;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_dispatcher') THEN
        GRANT EXECUTE ON FUNCTION add_call_partitions, needed_calls, bound_kept_calls, drop_call_partition TO redial_dispatcher;
    END IF;
END
$$;

-- The oldest partition, and the first of those that come after it.
CREATE TABLE calls_kept (LIKE calls INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED)
    WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE TABLE attempts_kept (LIKE attempts INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
DO $$
DECLARE
    bound timestamptz := date_trunc('milliseconds', clock_timestamp());
BEGIN
    INSERT INTO call_partitions VALUES (0, '-infinity', bound);
    EXECUTE format('ALTER TABLE calls ATTACH PARTITION calls_kept FOR VALUES FROM (MINVALUE) TO (%L)', first_id(bound));
    EXECUTE format('ALTER TABLE attempts ATTACH PARTITION attempts_kept FOR VALUES FROM (MINVALUE) TO (%L)', first_id(bound));
END
$$;
SELECT add_call_partitions(interval '0', interval '30 days');

COMMENT ON TABLE calls_kept IS 'The oldest partition of calls: what is still needed of those that were dropped.';
COMMENT ON TABLE attempts_kept IS 'The oldest partition of attempts: those of calls_kept.';
COMMENT ON TABLE call_partitions IS 'The partitions of calls and attempts: calls_<number> and attempts_<number>, of ids made in this time; 0: calls_kept.';
