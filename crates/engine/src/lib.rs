//! Every decision of Redial: a record and an event become a transition and its effects.
//!
//! Pure: the clock, ids and randomness are arguments, nothing waits, nothing is stored. [`call`] decides about calls,
//! [`sweep`] about those that are due, [`accept`] about submissions, [`task`] about tasks. The rules that they are made
//! of stand beside them: [`route`](fn@route) (what an error class leads to), [`retry`] (when the next attempt is due), [`budget`]
//! (how many retries a failing tool gets), [`publish`] (when an unclaimed job is published again) and [`outage`] (when
//! a lease may count as expired).

pub mod accept;
pub mod budget;
pub mod call;
pub mod feedback;
pub mod fingerprint;
pub mod mutation;
pub mod outage;
pub mod publish;
pub mod retry;
pub mod route;
mod span;
pub mod sweep;
pub mod task;
pub mod tools;
pub mod view;

pub use budget::Budget;
pub use redial_records::Time;
pub use route::{Route, route};
