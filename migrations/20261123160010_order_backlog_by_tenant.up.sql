-- Each tenant has its own place in the backlog of a tool, so that none waits behind the flood of another: the feeder finds who
-- waits without reading what waits, and takes from each in turn.
CREATE INDEX calls_waiting ON calls (tool, backlog_retry, tenant COLLATE "C", backlog_at, id) WHERE backlog_at IS NOT NULL;
DROP INDEX calls_backlog;
