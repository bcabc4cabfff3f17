-- History by time: `calls` and `attempts` are partitioned by ranges of ids, which begin with the time at which they were made.
--
-- Why it has this shape:
-- * What is written now goes to one partition, whose indexes stay as small as the time that it spans. Old calls cost nothing but
--   space, and retention drops their tables instead of deleting their rows.
-- * A partition is made apart and attached: that keeps nobody from reading or writing. Dispatchers do so ahead of time
--   (add_call_partitions). There is no default partition: attaching another one would lock and scan it.
-- * What is still needed of a partition that is dropped moves to a new one with the same bounds (drop_call_partition): calls that have
--   not ended, and those of conversations that go on. So none is ever attached with rows in it, which Postgres would have to read for
--   as long as that takes. Small ones that are next to each other become one.
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

-- Makes an empty partition of `calls` or `attempts`.
CREATE FUNCTION make_call_partition(parent text, name text, from_at timestamptz, to_at timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED) WITH (%s)',
        name, parent, CASE parent
            WHEN 'calls' THEN 'fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1'
            ELSE 'fillfactor = 100' END);
    EXECUTE format('COMMENT ON TABLE %I IS %L', name, 'A partition of ' || parent || ', of the time in call_partitions.');
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%L)',
        parent, name, CASE WHEN isfinite(from_at) THEN quote_literal(first_id(from_at)) ELSE 'MINVALUE' END, first_id(to_at));
END
$$;

-- Makes partitions until the last one ends later than `ahead` from now, each for `width` (an hour at least); returns how many. One
-- dispatcher at a time does so, and the others find them made.
CREATE FUNCTION add_call_partitions(ahead interval, width interval) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    last   call_partitions;
    until  timestamptz;
    parent text;
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
            PERFORM make_call_partition(parent, parent || '_' || (last.number + 1), last.to_at, until);
        END LOOP;
        INSERT INTO call_partitions VALUES (last.number + 1, last.to_at, until);
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;

-- The bytes of some calls of a partition and their attempts; of all for NULL.
CREATE FUNCTION bytes_of_calls(part text, ids uuid[]) RETURNS numeric
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    parent text;
    sizes  text;
    bytes  numeric;
    total  numeric := 0;
BEGIN
    FOREACH parent IN ARRAY ARRAY['calls', 'attempts'] LOOP
        -- Of each column by itself: the size of a whole row would fetch what is stored apart.
        SELECT string_agg(format('COALESCE(pg_column_size(%I), 0)', attname), '::bigint + ') INTO sizes FROM pg_attribute
        WHERE attrelid = parent::regclass AND attnum > 0 AND NOT attisdropped;
        EXECUTE format('SELECT COALESCE(sum(%s), 0) FROM %I', sizes, parent || '_' || part)
            || CASE WHEN ids IS NULL THEN '' WHEN parent = 'calls' THEN ' WHERE id = ANY ($1)' ELSE ' WHERE call_id = ANY ($1)' END
            INTO bytes USING ids;
        total := total + bytes;
    END LOOP;
    RETURN total;
END
$$;

-- What is still needed of a partition: calls that have not ended, or not before `cutoff`, those of tasks that are on record, and the
-- redrives of these, because a call is redriven once. NULL if these are more than `most`, or they and their attempts take more than
-- 100 MiB: dropping a partition holds everybody up for as long as it moves what is needed, so this is decided before anything is locked.
-- None of a partition that is not there. Locks nothing.
CREATE FUNCTION needed_calls(which int, cutoff timestamptz, most int) RETURNS uuid[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    part   call_partitions;
    needed uuid[];
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
    RETURN CASE
        WHEN cardinality(needed) <= most AND bytes_of_calls(which::text, needed) <= 100 * 1024 * 1024 THEN needed END;
END
$$;

-- Drops the oldest partition, after what is still needed of it (needed_calls) was moved to one of those that keep such calls: their
-- numbers count down from 0, and number -1 is the tables `calls_kept_1` and `attempts_kept_1`. Returns how many calls were moved; NULL,
-- and nothing changed, if that would be too much. Everything waits while they are moved, for as long as the caller's statement_timeout at
-- most; and it waits for everybody for as long as the caller's lock_timeout, while others wait for it.
CREATE FUNCTION drop_call_partition(which int, cutoff timestamptz, most int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    most_bytes CONSTANT numeric := 100 * 1024 * 1024;
    part   call_partitions;
    kept   call_partitions;
    needed uuid[];
    -- The partitions that become one, their calls and bytes.
    old    text[] := ARRAY[which::text];
    total  bigint;
    bytes  numeric;
    more   bigint;
    -- The number of the new one: that of none that is there.
    next   int;
    parent text;
    name   text;
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
    -- Those that were kept before and are not much larger join what is kept now: so there are few, and no call is moved often.
    next := (SELECT LEAST(min(number), 0) - 1 FROM call_partitions);
    total := cardinality(needed);
    bytes := bytes_of_calls(which::text, needed);
    FOR kept IN SELECT * FROM call_partitions WHERE number <= 0 ORDER BY from_at DESC LOOP
        EXECUTE format('SELECT count(*) FROM (SELECT FROM %I LIMIT $1) c', 'calls_kept_' || -kept.number)
            INTO more USING 2 * total + 1001;
        EXIT WHEN more > 2 * total + 1000 OR total + more > most;
        bytes := bytes + bytes_of_calls('kept_' || -kept.number, NULL);
        EXIT WHEN bytes > most_bytes;
        old := old || ('kept_' || -kept.number);
        total := total + more;
        part.from_at := kept.from_at;
        DELETE FROM call_partitions WHERE number = kept.number;
    END LOOP;
    UPDATE call_partitions SET number = next, from_at = part.from_at WHERE number = which;
    LOCK TABLE calls, attempts IN ACCESS EXCLUSIVE MODE;
    -- What was opened or ended meanwhile. A union, because a dispatcher's connection does without the joins that would be fast here.
    EXECUTE format('SELECT ARRAY(SELECT unnest($2)
            UNION SELECT id FROM %1$I WHERE wake_at IS NOT NULL AND num_nonnulls(backlog_at) >= 0
            UNION SELECT id FROM %1$I WHERE finished_at >= $1)', 'calls_' || which)
        INTO needed USING cutoff, needed;
    FOREACH parent IN ARRAY ARRAY['calls', 'attempts'] LOOP
        FOREACH name IN ARRAY old LOOP
            EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, parent || '_' || name);
        END LOOP;
        PERFORM make_call_partition(parent, parent || '_kept_' || -next, part.from_at, part.to_at);
        SELECT string_agg(quote_ident(attname), ', ') INTO names FROM pg_attribute
        WHERE attrelid = parent::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
        FOREACH name IN ARRAY old LOOP
            EXECUTE format('INSERT INTO %I (%s) SELECT %s FROM %I', parent || '_kept_' || -next, names, names, parent || '_' || name)
                || CASE WHEN name <> which::text THEN '' WHEN parent = 'calls' THEN ' WHERE id = ANY ($1)'
                    ELSE ' WHERE call_id = ANY ($1)' END
                USING needed;
            EXECUTE format('DROP TABLE %I', parent || '_' || name);
        END LOOP;
    END LOOP;
    RETURN cardinality(needed);
END
$$;

-- Functions may be called by everyone unless that is forbidden.
REVOKE EXECUTE ON FUNCTION add_call_partitions, needed_calls, drop_call_partition FROM PUBLIC;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_dispatcher') THEN
        GRANT EXECUTE ON FUNCTION add_call_partitions, needed_calls, drop_call_partition TO redial_dispatcher;
    END IF;
END
$$;

-- What is kept, which is nothing yet, and the first one of those that come after it.
INSERT INTO call_partitions VALUES (0, '-infinity', date_trunc('milliseconds', clock_timestamp()));
SELECT make_call_partition(parent, parent || '_kept_0', from_at, to_at)
FROM call_partitions, UNNEST(ARRAY['calls', 'attempts']) AS parent;
SELECT add_call_partitions(interval '0', interval '30 days');

COMMENT ON TABLE call_partitions IS 'The partitions of calls and attempts, of ids made in this time: calls_<number> and attempts_<number>; from 0 down what is still needed of those that were dropped, calls_kept_<number without its sign>.';
