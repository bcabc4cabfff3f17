-- Calls that have not ended, whoever's they are: at most $1.
SELECT id FROM calls WHERE wake_at IS NOT NULL AND num_nonnulls(backlog_at) >= 0 LIMIT $1
