-- The ended attempts of calls.
SELECT call_id, worker, class IS NOT NULL AS "failed!", duration_ms FROM attempts WHERE call_id = ANY ($1)
