//! The clock of a history, and the protocol's intervals and timeouts in ms.

use std::time::Duration;

use chrono::DateTime;
use redial_engine::Time;
use redial_proto::subjects;

/// Ms since the history began, by the database's clock.
pub(crate) type Ms = i64;

/// How long a lease lasts after a claim or a heartbeat.
pub(crate) const LEASE: Ms = 15_000;
/// A worker considers its lease over this long before the database does.
pub(crate) const LEASE_MARGIN: Ms = 1_000;
/// The longest time that a process takes to reconnect.
pub(crate) const LONGEST_RECONNECT: Ms = 3_000;
/// A message that is not acknowledged is delivered again after this.
pub(crate) const ACK_WAIT: Ms = 30_000;
/// A job is dropped from the stream when it is so old.
pub(crate) const MAX_JOB_AGE: Ms = subjects::MAX_JOB_AGE.as_millis() as Ms;
/// A consumer may be given to workers with other tools when its own were not seen for so long.
pub(crate) const CONSUMER_FREE_AFTER: Ms = 120_000;
/// The timeout of every attempt.
pub(crate) const TIMEOUT: Ms = 60_000;

/// Time between two heartbeats of a worker.
pub(crate) const HEARTBEAT_INTERVAL: Ms = LEASE / 3;
/// A worker that could not send a heartbeat tries again after this.
pub(crate) const HEARTBEAT_RETRY: Ms = LEASE / 20;
/// A worker ignores the reply to a heartbeat after this.
pub(crate) const REPLY_TIMEOUT: Ms = 3_000;
/// A worker sends claims, releases and reports again after this if no reply arrived.
pub(crate) const RESEND_AFTER: Ms = 2_000;
/// A worker gives up a claim after this if no reply arrived.
pub(crate) const CLAIM_TIMEOUT: Ms = 20_000;

pub(crate) fn time(ms: Ms) -> Time {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

pub(crate) fn since(time: Time) -> Ms {
    time.timestamp_millis()
}

/// A time or a span as the engine's outage detector takes it.
pub(crate) fn duration(now: Ms) -> Duration {
    Duration::from_millis(now.unsigned_abs())
}
