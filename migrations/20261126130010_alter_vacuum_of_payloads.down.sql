ALTER TABLE payloads RESET (
    autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay,
    toast.autovacuum_vacuum_scale_factor, toast.autovacuum_vacuum_threshold, toast.autovacuum_vacuum_cost_delay);
