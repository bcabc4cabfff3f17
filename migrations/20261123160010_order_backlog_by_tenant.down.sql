CREATE INDEX calls_backlog ON calls (tool, backlog_retry, backlog_at, id) WHERE backlog_at IS NOT NULL;
DROP INDEX calls_waiting;
