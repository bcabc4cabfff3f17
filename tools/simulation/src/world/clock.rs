//! Time in a history, and how long things take in it.

use std::time::Duration;

use chrono::DateTime;
use redial_engine::Time;

/// Ms since the history began, by the database's clock.
pub(crate) type Ms = i64;

/// How long a lease holds.
pub(crate) const LEASE: Ms = 15_000;
/// A worker counts its lease as so much shorter.
pub(crate) const LEASE_MARGIN: Ms = 1_000;
/// The longest time that a process takes to connect again.
pub(crate) const LONGEST_RECONNECT: Ms = 3_000;
/// A message that is not acknowledged is delivered again after this.
pub(crate) const ACK_WAIT: Ms = 30_000;

/// It renews every third of the lease.
pub(crate) const HEARTBEAT_INTERVAL: Ms = LEASE / 3;
/// A heartbeat that failed is tried again after this.
pub(crate) const HEARTBEAT_RETRY: Ms = LEASE / 20;
/// A heartbeat's answer counts only within this.
pub(crate) const REPLY_TIMEOUT: Ms = 3_000;
/// ItemKind is not answered is pending for again after this.
pub(crate) const RESEND_AFTER: Ms = 2_000;
/// A claim without an answer is given up after this.
pub(crate) const CLAIM_TIMEOUT: Ms = 20_000;

pub(crate) fn time(ms: Ms) -> Time {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

pub(crate) fn since(time: Time) -> Ms {
    time.timestamp_millis()
}

/// The same moment as the engine's outage detector takes it.
pub(crate) fn uptime(now: Ms) -> Duration {
    Duration::from_millis(now.unsigned_abs())
}
