-- Pieces are put and dropped all the time, by whoever may send something large. What was dropped is free for others soon: the table
-- grows to about what is put in two minutes.
ALTER TABLE payloads SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 100000, toast.autovacuum_vacuum_cost_delay = 0);
