-- Redrives by filter: which ended calls of a tenant run again, and how far that is.
--
-- Why it has this shape:
-- * The id is made by whoever asks, so a request that is sent again is the same redrive. Ids are the tenant's own.
-- * One transaction writes new calls and how far the redrive came. So each call counts once, whatever dies in between, and no
--   call is written once a cancel is on record.
-- * `next_at` says when a dispatcher works on it: later after each step, as its rate demands, and later than the step can
--   take while a dispatcher works on it. A dispatcher that dies is followed by another one then.
-- * A redrive that somebody confirmed with a count (`at_most`) runs no more calls again than that.
-- * A walk goes from newer to older calls, once for each state (`pass`), and takes only what was submitted before the redrive
--   was: the calls that it writes are never among those that it finds.
CREATE TABLE redrives (
    tenant        text        NOT NULL,
    id            uuid        NOT NULL,
    filter        json        NOT NULL,
    dry_run       boolean     NOT NULL,
    rate          int         NOT NULL CHECK (rate > 0),
    at_most       bigint      CHECK (at_most > 0),
    state         text        NOT NULL CHECK (state IN ('counting', 'running', 'done', 'cancelled', 'failed')),
    pass          int         NOT NULL DEFAULT 0,
    position      uuid,
    matched       bigint      NOT NULL DEFAULT 0,
    redriven      bigint      NOT NULL DEFAULT 0,
    existing      bigint      NOT NULL DEFAULT 0,
    refused       bigint      NOT NULL DEFAULT 0,
    error         text,
    created_by    text        NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at   timestamptz,
    next_at       timestamptz DEFAULT clock_timestamp(),
    taken_by      uuid,
    PRIMARY KEY (tenant, id),
    CHECK ((finished_at IS NULL) = (state IN ('counting', 'running'))),
    CHECK ((next_at IS NULL) = (finished_at IS NOT NULL))
);
CREATE INDEX redrives_due ON redrives (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX redrives_listed ON redrives (tenant, created_at, id);
CREATE INDEX redrives_finished ON redrives (finished_at) WHERE finished_at IS NOT NULL;

COMMENT ON TABLE redrives IS 'Redrives by filter, with their progress.';
COMMENT ON COLUMN redrives.tenant IS 'Whose calls.';
COMMENT ON COLUMN redrives.filter IS 'Which calls.';
COMMENT ON COLUMN redrives.dry_run IS 'It only counts.';
COMMENT ON COLUMN redrives.rate IS 'Calls that run again per second, at most.';
COMMENT ON COLUMN redrives.at_most IS 'It fails if more calls match, and runs no more than this again; null: any number.';
COMMENT ON COLUMN redrives.state IS 'counting, running; or ended: done, cancelled, failed.';
COMMENT ON COLUMN redrives.pass IS 'Which of the states of the filter is walked through, from 0.';
COMMENT ON COLUMN redrives.position IS 'The next step looks at calls before this one.';
COMMENT ON COLUMN redrives.matched IS 'Calls that would run again, when they were counted.';
COMMENT ON COLUMN redrives.redriven IS 'Calls that run again as new calls.';
COMMENT ON COLUMN redrives.existing IS 'Calls that somebody else redrove meanwhile.';
COMMENT ON COLUMN redrives.refused IS 'Calls that may not run again: their tool is not allowed any more, or they are being erased.';
COMMENT ON COLUMN redrives.error IS 'Why it failed.';
COMMENT ON COLUMN redrives.created_by IS 'The user who asked for it.';
COMMENT ON COLUMN redrives.next_at IS 'When a dispatcher works on it next.';
COMMENT ON COLUMN redrives.taken_by IS 'The dispatcher that took it last, by the id of its step.';
