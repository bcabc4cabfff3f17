//! Redial's tables in Postgres: the only truth, and the only crate that speaks SQL.
//!
//! Everything works on batches: one statement for up to a thousand calls. A statement guards the state that it
//! expects, so that a late or doubled change does nothing; no rule about what comes next is decided here.
//!
//! One verb, one file: [`submit`](Store::submit), [`claim`](Store::claim), [`renew`](Store::renew),
//! [`load`](Store::load), [`apply`](Store::apply), [`sweep`](Store::sweep); for tasks
//! [`submit_tasks`](Store::submit_tasks), [`advance`](Store::advance). People's questions are in [`audit`].

pub mod admin;
mod apply;
pub mod audit;
mod claim;
mod connect;
mod error;
mod give_up;
mod kept;
mod load;
mod registry;
mod renew;
mod retention;
mod submit;
mod sweep;
mod tasks;

pub use apply::{Applied, Change, EndedAttempt, Expected};
pub use claim::{Claim, Granted};
pub use connect::{Purpose, Store, StoreConfig};
pub use error::StoreError;
pub use kept::{DeadLetter, LateReport};
pub use load::{CallRow, Content};
pub use registry::WorkerHeartbeat;
pub use submit::{NewCall, Submitted};
pub use sweep::Sweeper;
pub use tasks::{
    Advanced, Advancer, EndedCall, InboxItem, NewTask, StartInfo, SubmittedTask, TaskCall, TaskChange, TaskOrigin,
    TaskRow,
};

/// Why a call or an attempt failed, as it is stored.
#[derive(Clone, Debug)]
pub struct Reason {
    /// What the audit can be searched by.
    pub class: redial_proto::ErrorClass,
    /// The same in words.
    pub message: String,
    /// Broken rules, as JSON.
    pub details: Option<String>,
}

/// A point in time by the database's clock.
pub type Time = chrono::DateTime<chrono::Utc>;

/// Postgres's `text` cannot hold U+0000; everything else is kept.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Rust's numbers as Postgres's `int`; anything larger than Redial's own limits allow is cut to the largest.
pub(crate) fn int(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Postgres's `int` as ours; what our own columns hold is never negative.
pub(crate) fn uint(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
