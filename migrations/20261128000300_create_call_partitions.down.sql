-- Deletes all calls: each is in a partition.
DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent IN ('calls'::regclass, 'attempts'::regclass) LOOP
        EXECUTE 'DROP TABLE ' || part;
    END LOOP;
END
$$;
DROP FUNCTION drop_call_partition, needed_calls, bytes_of_calls, add_call_partitions, make_call_partition;
DROP TABLE call_partitions;
DROP FUNCTION first_id;
