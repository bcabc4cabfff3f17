-- Erasures: what was asked to be forgotten, how far that is, and afterwards that it happened. No content of what was erased.
--
-- Why it has this shape:
-- * One row for each erasure. It is written before anything is deleted, and every transaction that deletes also writes here
--   how far it came. So an erasure that a dispatcher or a user left half-way is found and finished, and counts once.
-- * The id is made by whoever asks, so a request that is sent again continues the same erasure.
-- * Only what was submitted before `until_at` is erased. Until then no task of the scope starts (`holds_starts`), because a
--   model must not be shown half a conversation.
-- * No index of `calls` leads with the tenant, because each index costs every submission. The calls of a tenant are found by
--   a walk along the primary key, in bounded steps; `after_id` is how far it came.

CREATE TABLE tombstones (
    id            uuid        PRIMARY KEY,
    tenant        text        NOT NULL,
    conversation  text,
    actor         text        NOT NULL,
    cancels       boolean     NOT NULL,
    begun_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    until_at      timestamptz,
    touched_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    erased_at     timestamptz,
    phase         text        NOT NULL DEFAULT 'open' CHECK (phase IN ('open', 'letters', 'tasks', 'calls', 'statistics',
                                                                       'last_letters', 'done')),
    holds_starts  boolean     NOT NULL GENERATED ALWAYS AS (phase IN ('open', 'letters', 'tasks')) STORED,
    after_text    text,
    after_id      uuid,
    after_letter  bigint,
    first_at      timestamptz,
    last_at       timestamptz,
    tasks         bigint      NOT NULL DEFAULT 0,
    messages      bigint      NOT NULL DEFAULT 0,
    steps         bigint      NOT NULL DEFAULT 0,
    calls         bigint      NOT NULL DEFAULT 0,
    model_turns   bigint      NOT NULL DEFAULT 0,
    attempts      bigint      NOT NULL DEFAULT 0,
    late_reports  bigint      NOT NULL DEFAULT 0,
    dead_letters  bigint      NOT NULL DEFAULT 0,
    keys          bigint      NOT NULL DEFAULT 0,
    statistics    bigint      NOT NULL DEFAULT 0,
    CHECK ((erased_at IS NULL) = (phase <> 'done')),
    CHECK (phase = 'open' OR until_at IS NOT NULL)
);

-- At most one unfinished erasure of each scope. Also what a start and a redrive look at: a few rows, or none.
CREATE UNIQUE INDEX tombstones_unfinished ON tombstones (tenant, (COALESCE(conversation, '')), ((conversation IS NULL)))
    WHERE erased_at IS NULL;
CREATE INDEX tombstones_erased ON tombstones (erased_at) WHERE erased_at IS NOT NULL;

-- From now on a late report is kept only while its call is on record. What older versions kept of others names nothing by which
-- an erasure could find it.
DELETE FROM late_reports l WHERE (SELECT c.id FROM calls c WHERE c.id = l.call_id) IS NULL;

-- The tenant of a message of the intake stream that was rejected, as far as it is known: its erasure finds it by that.
ALTER TABLE dead_letters ADD COLUMN tenant text;

COMMENT ON TABLE tombstones IS 'Erasures of conversations and tenants: that and when something was erased, and by whom. Listed by redial forget --list.';
COMMENT ON COLUMN tombstones.conversation IS 'The conversation; empty if the whole tenant was erased.';
COMMENT ON COLUMN tombstones.actor IS 'Who asked for it.';
COMMENT ON COLUMN tombstones.cancels IS 'Work that has not ended is cancelled first.';
COMMENT ON COLUMN tombstones.begun_at IS 'When it was asked for.';
COMMENT ON COLUMN tombstones.until_at IS 'What was submitted until then is erased.';
COMMENT ON COLUMN tombstones.touched_at IS 'When a dispatcher last worked on it.';
COMMENT ON COLUMN tombstones.erased_at IS 'When the last of it was deleted; empty while it is under way.';
COMMENT ON COLUMN tombstones.first_at IS 'When the oldest task or call that was erased had been submitted.';
COMMENT ON COLUMN tombstones.last_at IS 'When the newest task or call that was erased had been submitted.';
COMMENT ON COLUMN tombstones.keys IS 'Idempotency keys of erased tasks and calls: they are free again.';
COMMENT ON COLUMN tombstones.statistics IS 'Rows of statistics of an erased tenant.';
COMMENT ON COLUMN dead_letters.tenant IS 'The tenant of a rejected submission; empty if it is not known.';
