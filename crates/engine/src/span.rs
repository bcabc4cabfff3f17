//! Spans of time in ms.

use chrono::TimeDelta;

/// Converts a number of ms; more than 300 years become 300 years.
pub(crate) fn ms(span: u64) -> TimeDelta {
    const LONGEST: i64 = 300 * 366 * 24 * 3600 * 1000;
    TimeDelta::milliseconds(i64::try_from(span).unwrap_or(LONGEST).min(LONGEST))
}
