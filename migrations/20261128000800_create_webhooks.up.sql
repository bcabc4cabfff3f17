-- Webhooks: subscriptions to the ends of calls and tasks.
--
-- Why the tables have this shape:
-- * The statement that ends a call or a task also puts it into a queue, if its tenant has an active webhook. A loop of the dispatchers
--   takes ends from the queue and writes an event for each webhook that wants it, in one transaction: each end is told once, whatever
--   dies in between, however late it is committed, and whatever the clock says. Nobody waits for transactions of others. It is not the
--   queue of the statistics: what holds up one of them holds up the other one not.
-- * An event is a row without content until its delivery, a call, is written: the transaction that writes the call also
--   writes its id here, so an event is delivered by one call, whatever dies. A receiver that is down costs rows, not payloads.
-- * The row stays until the delivery has ended.
-- * No secret is here: secrets are derived from a key that Postgres does not have.

CREATE TABLE webhooks (
    tenant         text        NOT NULL,
    id             uuid        NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by     text        NOT NULL,
    content        uuid        NOT NULL,
    url            text        NOT NULL,
    events         text[]      NOT NULL,
    tools          text[]      NOT NULL,
    agents         text[]      NOT NULL,
    key_id         text        NOT NULL,
    secret_version int         NOT NULL DEFAULT 1,
    previous_until timestamptz,
    state          text        NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'disabled')),
    reason         text,
    since          timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, id)
);

CREATE TABLE webhook_events (
    tenant   text        NOT NULL,
    webhook  uuid        NOT NULL,
    subject  uuid        NOT NULL,
    event    text        NOT NULL,
    at       timestamptz NOT NULL,
    delivery uuid,
    PRIMARY KEY (tenant, webhook, subject)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX webhook_events_pending ON webhook_events (tenant, webhook, at) WHERE delivery IS NULL;
CREATE INDEX webhook_events_open ON webhook_events (tenant, webhook) WHERE delivery IS NOT NULL;
CREATE INDEX webhook_events_delivery ON webhook_events (delivery) WHERE delivery IS NOT NULL;

-- The queue, as that of the statistics.
CREATE TABLE untold_ends (
    id       uuid        NOT NULL,
    is_task  boolean     NOT NULL,
    ended_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = off);

-- One row. It spares the other dispatchers the same work for a few seconds; nothing depends on there being one leader only.
CREATE TABLE webhook_lead (
    only_row    boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    leader      uuid,
    leads_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO webhook_lead DEFAULT VALUES;

COMMENT ON TABLE webhooks IS 'Subscriptions to the ends of calls and tasks. Secrets are derived, and not on record.';
COMMENT ON COLUMN webhooks.content IS 'Fingerprint of what was asked for when it was created.';
COMMENT ON COLUMN webhooks.key_id IS 'Which key its secrets are derived from.';
COMMENT ON COLUMN webhooks.previous_until IS 'Until then the secret of the version before signs, too.';
COMMENT ON COLUMN webhooks.reason IS 'Why it is disabled: user, gone (the receiver answered 410) or backlog.';
COMMENT ON COLUMN webhooks.since IS 'What ended earlier raises no event: when it was created or last enabled.';
COMMENT ON TABLE webhook_events IS 'Events that wait for their delivery, or whose delivery has not ended.';
COMMENT ON COLUMN webhook_events.subject IS 'The call or task that ended.';
COMMENT ON COLUMN webhook_events.delivery IS 'The call of tool redial_webhook that delivers it.';
COMMENT ON TABLE untold_ends IS 'Calls and tasks of tenants with webhooks that have ended and have no events yet.';
COMMENT ON TABLE webhook_lead IS 'The dispatcher that turns ends into events and deliveries.';
