//! What happens to a call. Pure decisions: the clock and randomness are arguments, nothing waits, nothing is stored.
//!
//! [`step`] takes a call and an event and says what comes next; the dispatcher stores that and acts on it. The rules
//! it is made of stand beside it: [`route`] (what an error class leads to), [`retry`] (when the next attempt is due),
//! [`budget`] (how many retries a failing tool gets) and [`publish`] (when an unclaimed job is published again).

pub mod budget;
pub mod call;
pub mod feedback;
pub mod fingerprint;
pub mod publish;
pub mod retry;
pub mod route;
pub mod task;
pub mod tools;
pub mod view;

pub use budget::Budget;
pub use call::{Call, Event, Next, Step, step};
pub use route::{Route, route};

/// A point in time; always the database's clock in production.
pub type Time = chrono::DateTime<chrono::Utc>;

/// A number of ms as a span of time; more than 300 years become 300 years.
pub(crate) fn ms(span: u64) -> chrono::TimeDelta {
    const LONGEST: i64 = 300 * 366 * 24 * 3600 * 1000;
    chrono::TimeDelta::milliseconds(i64::try_from(span).unwrap_or(LONGEST).min(LONGEST))
}
