//! How long and how far one request looks.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::problem::Problem;

/// Calls that one request looks at, and for how long, before it answers with what it found.
pub(crate) const LOOKED: u64 = 100_000;
pub(crate) const LOOKS_FOR: Duration = Duration::from_secs(2);
/// The longest time that one question covers.
const LONGEST: TimeDelta = TimeDelta::days(366);

/// Returns how long a search looks that asks for `ms`.
pub(crate) fn look_time(ms: Option<u64>) -> Result<Duration, Problem> {
    let longest = u64::try_from(LOOKS_FOR.as_millis()).unwrap_or(u64::MAX);
    match ms {
        None => Ok(LOOKS_FOR),
        Some(ms) if (10..=longest).contains(&ms) => Ok(Duration::from_millis(ms)),
        Some(ms) => Err(Problem::invalid(format!("look_ms is {ms}; allowed: 10 to {longest}"))),
    }
}

/// Returns the begin of the time that a question is about.
pub(crate) fn since(since: Option<DateTime<Utc>>, until: Option<DateTime<Utc>>) -> Result<DateTime<Utc>, Problem> {
    Problem::check_times(&[("since", since), ("until", until)])?;
    let since = since.unwrap_or_else(|| Utc::now() - TimeDelta::hours(24));
    let end = until.unwrap_or_else(Utc::now);
    if end <= since || end - since > LONGEST {
        return Err(Problem::invalid("since must be before until, or before now, by 366 days at most"));
    }
    Ok(since)
}
