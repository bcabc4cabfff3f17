-- Statistics: figures of the calls that ended in each hour, for `redial stats`.
--
-- Why the tables have this shape:
-- * The statement that ends a call also puts it into a queue. A background loop of the dispatchers takes a few thousand calls at a time
--   from the queue and adds them to the sums of their hours in one transaction: each call counts exactly once, whatever dies in between,
--   however late its end is committed, and whatever the clock says. Nobody waits for transactions of others.
-- * `durations` counts by logarithmic buckets, so that hours can be added up: see crates/store/src/stats/histogram.rs.
-- * Sums of the current hour are replaced every 15 s; fillfactor leaves room for that on their page (HOT updates).
-- * Names in the keys come from outside, so the number of rows for an hour is limited: what is beyond counts as '(other)'.

-- * All sums are in one table, whatever is counted: what is read of them, added to them, limited and deleted is the same. Each kind has
--   its own names and counts.
-- * Days are sums of hours: of 1,000,000 rows of models, those of a tenant over 366 days are added up in 0.4 s to 0.9 s (measured).
--
-- Of a chain of corrections each call counts on its own when it ends, so that no call has to be looked at twice: as right at once,
-- repaired or wrong if it corrects no earlier one. Those that are right ran as they were written or after a repair; those that are wrong
-- were fed back to the model. What was given up is what was wrong and never corrected: wrong less all that was corrected.
CREATE TABLE stats (
    kind      text        NOT NULL,
    hour      timestamptz NOT NULL,
    tenant    text        NOT NULL,
    tool      text        NOT NULL,
    a         text        NOT NULL,
    b         text        NOT NULL,
    c         text        NOT NULL,
    counts    bigint[]    NOT NULL,
    durations int[]       NOT NULL,
    PRIMARY KEY (kind, hour, tenant, tool, a, b, c)
) WITH (fillfactor = 70);

-- The queue. Without an index, because every call passes through it: rows are taken as they lie there. Empty pages at the end are kept:
-- to cut them off, vacuum would lock out those that end calls.
CREATE TABLE uncounted_calls (
    call_id  uuid        NOT NULL,
    ended_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = off);

COMMENT ON TABLE stats IS 'Sums by the hour in which calls ended, but for those in uncounted_calls.';
COMMENT ON COLUMN stats.kind IS 'call: all calls, by state a and error class b (empty: succeeded). attempt: by worker a. model: calls and turns (tool is empty) of tasks, by declared agent a (empty: given with its task) and model b. place: calls by what happened in their arguments, a (error or repair), at JSON pointer b (* stands for any index), by rule or kind of repair c.';
COMMENT ON COLUMN stats.hour IS 'Start of the hour.';
COMMENT ON COLUMN stats.tool IS 'Name of the tool; model-NAME for model turns; (unknown tool), (other).';
COMMENT ON COLUMN stats.counts IS 'call: calls, attempts beyond the first, calls that a model made after one of the same tool had failed in a way that it could correct, USAGE. attempt: attempts, failed ones. model: calls, right at once, repaired, wrong, right after one, two, three or more turns of corrections, USAGE. place: calls. USAGE: answers of models, tokens read, tokens written, price in millionths of a US dollar, answers of which a number of tokens is not known, of which the price is not known.';
COMMENT ON COLUMN stats.durations IS 'Calls that had an attempt, by their time from submission to end, and attempts by the time that the tool ran (without those whose worker was lost): element 1 is below 1 ms, element n + 2 begins at 2^(n/4) ms.';
COMMENT ON TABLE uncounted_calls IS 'Calls that have ended and are not in the statistics yet.';
