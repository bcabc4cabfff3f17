//! Milliseconds, as the report counts.

use std::time::Duration;

pub(super) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
