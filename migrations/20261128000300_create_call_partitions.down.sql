-- Deletes all calls: each is in a partition.
DO $$
DECLARE
    part int;
BEGIN
    FOR part IN SELECT number FROM call_partitions WHERE number > 0 LOOP
        EXECUTE format('DROP TABLE %I, %I', 'calls_' || part, 'attempts_' || part);
    END LOOP;
END
$$;
DROP TABLE calls_kept, attempts_kept;
DROP FUNCTION drop_call_partition, bound_kept_calls, needed_calls, add_call_partitions;
DROP TABLE call_partitions;
DROP FUNCTION first_id;
