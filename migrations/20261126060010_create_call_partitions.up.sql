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
-- * An index of a partitioned table is unique within a partition only. So what must be unique over all time has tables of its own:
--   keys, calls that were redriven, and the calls of a turn of a task.
-- * Dispatchers may not create or drop tables; the functions below do just that for them, with the rights of the tables' owner.

-- The smallest id of a time: version 7 UUIDs begin with 48 bits of Unix time in ms (RFC 9562, section 5.7).
CREATE FUNCTION first_id(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$$;

-- Which call has a key. A refused call does not hold its key; it is on record once for each content.
CREATE TABLE call_keys (
    tenant  text NOT NULL,
    key     text NOT NULL,
    -- The content of a refused submission; of the call that holds the key, zeros.
    refused uuid NOT NULL,
    call_id uuid NOT NULL,
    PRIMARY KEY (tenant, key, refused)
);
-- Each call is redriven at most once.
CREATE TABLE redriven_calls (
    call_id     uuid PRIMARY KEY,
    redriven_as uuid NOT NULL
);
-- The calls of a task, in order. call_index 0 is the request to the model.
CREATE TABLE task_calls (
    task_id    uuid NOT NULL,
    turn       int  NOT NULL,
    call_index int  NOT NULL,
    call_id    uuid NOT NULL,
    PRIMARY KEY (task_id, turn, call_index)
);

INSERT INTO call_keys (tenant, key, refused, call_id)
SELECT tenant, key, CASE WHEN refused THEN COALESCE(content, id) ELSE '00000000-0000-0000-0000-000000000000' END, id
FROM calls WHERE key IS NOT NULL;
INSERT INTO redriven_calls (call_id, redriven_as) SELECT redrive_of, id FROM calls WHERE redrive_of IS NOT NULL;
INSERT INTO task_calls (task_id, turn, call_index, call_id)
SELECT task_id, turn, call_index, id FROM calls WHERE task_id IS NOT NULL;

-- Found when their calls are deleted; ids grow with time, so a new entry is always the last one.
CREATE INDEX call_keys_call ON call_keys (call_id);
CREATE INDEX redriven_calls_as ON redriven_calls (redriven_as);
CREATE INDEX task_calls_call ON task_calls (call_id);

CREATE TABLE call_partitions (
    number  int         PRIMARY KEY,
    from_at timestamptz NOT NULL,
    to_at   timestamptz NOT NULL
);

-- The tables of before are the first partitions. Views hold on to the table, not to its name, so they are made again.
DO $$
DECLARE
    bound     timestamptz;
    restore   text[];
    name      text;
    command   text;
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
    DROP INDEX calls_key, calls_redrive, calls_task;
    DROP TRIGGER ended_calls_never_change ON calls;
    -- Ids are made by dispatchers' clocks, which may be ahead.
    bound := GREATEST(date_trunc('milliseconds', clock_timestamp()), (
        SELECT to_timestamp(('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0) + interval '2 ms'
        FROM calls ORDER BY id DESC LIMIT 1));

    FOREACH name IN ARRAY ARRAY['calls', 'attempts'] LOOP
        FOR command IN
            SELECT format('ALTER INDEX %I RENAME TO %I', i.relname, name || '_kept' || substr(i.relname, length(name) + 1))
            FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
            WHERE x.indrelid = name::regclass
        LOOP
            EXECUTE command;
        END LOOP;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', name, name || '_kept');
    END LOOP;
    INSERT INTO call_partitions VALUES (0, '-infinity', bound);

    CREATE TABLE calls (LIKE calls_kept INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED) PARTITION BY RANGE (id);
    CREATE TABLE attempts (LIKE attempts_kept INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (call_id);
    FOREACH command IN ARRAY restore LOOP
        EXECUTE command;
    END LOOP;
END
$$;

ALTER TABLE calls ADD PRIMARY KEY (id);
ALTER TABLE attempts ADD PRIMARY KEY (call_id, attempt);
CREATE INDEX attempts_worker ON attempts (worker, call_id);
-- Few on purpose: each index costs every submission. None may contain a column that every claim changes.
CREATE INDEX calls_wake ON calls (num_nonnulls(backlog_at), wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX calls_waiting ON calls (tool, backlog_retry, tenant COLLATE "C", backlog_at, id) WHERE backlog_at IS NOT NULL;
CREATE INDEX calls_tool ON calls (tool, id);
CREATE INDEX calls_conversation ON calls (conversation, id) WHERE conversation IS NOT NULL;
CREATE INDEX calls_class ON calls (class, id) WHERE class IS NOT NULL;
CREATE INDEX calls_ended_as ON calls (ended_as, id) WHERE ended_as IS NOT NULL;
CREATE INDEX calls_finished ON calls (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX calls_tenant ON calls (tenant, id) WHERE tenant <> 'default';
CREATE INDEX calls_tenant_finished ON calls (tenant, finished_at) WHERE finished_at IS NOT NULL AND tenant <> 'default';
CREATE TRIGGER ended_calls_never_change BEFORE UPDATE ON calls FOR EACH ROW
    WHEN (OLD.wake_at IS NULL) EXECUTE FUNCTION refuse_change_of_ended_call();

DO $$
DECLARE
    bound uuid := (SELECT first_id(to_at) FROM call_partitions);
BEGIN
    EXECUTE format('ALTER TABLE calls ATTACH PARTITION calls_kept FOR VALUES FROM (MINVALUE) TO (%L)', bound);
    EXECUTE format('ALTER TABLE attempts ATTACH PARTITION attempts_kept FOR VALUES FROM (MINVALUE) TO (%L)', bound);
END
$$;

-- The calls of tasks, found by their task.
CREATE VIEW calls_of_tasks AS
SELECT s.task_id, s.turn, s.call_index, c.id, c.tenant, c.pool, c.tool, c.state, c.class, c.attempt, c.wake_at, c.finished_at,
       c.arguments
FROM task_calls s
JOIN calls c ON c.id = s.call_id;

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

-- Says ahead of drop_call_partition, and without keeping anybody from working, that what is kept lies below the end of this partition,
-- or that would be checked while everything waits. Two statements in two transactions: the second one reads the whole table.
CREATE FUNCTION bound_kept_calls(which int, validate boolean) RETURNS void
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
CREATE FUNCTION drop_call_partition(which int, cutoff timestamptz, most int) RETURNS int
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

-- Functions may be called by everyone unless that is forbidden.
REVOKE EXECUTE ON FUNCTION add_call_partitions, bound_kept_calls, drop_call_partition FROM PUBLIC;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'redial_dispatcher') THEN
        GRANT EXECUTE ON FUNCTION add_call_partitions, bound_kept_calls, drop_call_partition TO redial_dispatcher;
    END IF;
END
$$;

SELECT add_call_partitions(interval '0', interval '30 days');

COMMENT ON TABLE calls_kept IS 'The oldest partition of calls: what is still needed of those that were dropped.';
COMMENT ON TABLE attempts_kept IS 'The oldest partition of attempts: those of calls_kept.';
COMMENT ON TABLE call_keys IS 'Idempotency keys of calls, unique over all time that is on record.';
COMMENT ON TABLE redriven_calls IS 'Calls that were redriven, and as which call.';
COMMENT ON TABLE task_calls IS 'The calls of tasks: call_index 0 of a turn is the request to the model.';
COMMENT ON TABLE call_partitions IS 'The partitions of calls and attempts: calls_<number> and attempts_<number>, of ids made in this time; 0: calls_kept.';
COMMENT ON VIEW calls_of_tasks IS 'The calls of tasks, found by their task. Read call_history instead.';
COMMENT ON COLUMN calls_of_tasks.task_id IS 'The task.';
COMMENT ON COLUMN calls_of_tasks.turn IS 'The turn of the task that asked for it, from 1.';
COMMENT ON COLUMN calls_of_tasks.call_index IS 'Its number within that turn: 0 is the request to the model, its tool calls count from 1.';
COMMENT ON COLUMN calls_of_tasks.id IS 'The call.';
COMMENT ON COLUMN calls_of_tasks.tenant IS 'The tenant.';
COMMENT ON COLUMN calls_of_tasks.pool IS 'The group of workers that runs it.';
COMMENT ON COLUMN calls_of_tasks.tool IS 'Name of the tool.';
COMMENT ON COLUMN calls_of_tasks.state IS 'As in call_history.';
COMMENT ON COLUMN calls_of_tasks.class IS 'Error class of a call that ended without success.';
COMMENT ON COLUMN calls_of_tasks.attempt IS 'Attempts started.';
COMMENT ON COLUMN calls_of_tasks.wake_at IS 'When it is looked at next; empty once it has ended.';
COMMENT ON COLUMN calls_of_tasks.finished_at IS 'When its end was committed.';
COMMENT ON COLUMN calls_of_tasks.arguments IS 'As the tool gets them.';
