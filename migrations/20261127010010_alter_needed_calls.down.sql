-- The function as it was.
-- What is still needed of a partition: calls that have not ended, or not before `cutoff`, and those of tasks that are on record. NULL if
-- these are more than `most`, or they and their attempts take more than 100 MiB. None of a partition that is not there. Locks nothing.
CREATE OR REPLACE FUNCTION needed_calls(which int, cutoff timestamptz, most int) RETURNS uuid[]
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
