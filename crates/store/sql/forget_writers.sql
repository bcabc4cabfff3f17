-- Whether all statements and transactions of dispatchers that began before $1 are over. A statement takes 8 s at most and a
-- transaction 10 s, so after half a minute they are in any case. When those of another login began, Postgres does not tell.
SELECT clock_timestamp() > $1::timestamptz + interval '30 s' OR NOT EXISTS (
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'redial' AND pid <> pg_backend_pid()
        AND (xact_start <= $1
            OR NOT (pg_has_role(usesysid, 'USAGE') OR pg_has_role('pg_read_all_stats', 'MEMBER')))
) AS "gone!"
