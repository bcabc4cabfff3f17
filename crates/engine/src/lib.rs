//! Every decision of Redial: a record and an event become a transition and its effects.
//!
//! Pure: the clock, ids and randomness are arguments, nothing waits, nothing is stored. [`call`] decides about calls,
//! [`sweep`] about those that are due, [`accept`] about submissions, [`task`] about tasks. The rules that they are made
//! of stand beside them: [`route`](fn@route) (what an error class leads to), [`retry`] (when the next attempt is due), [`health`]
//! (how many retries a failing tool gets), [`window`] (which jobs are published now, and to which workers), [`publish`]
//! (when the job of a call counts as lost) [`outage`] (when a lease may count as expired) and
//! [`pinning`] (which worker identities may serve a tool).

pub mod accept;
pub mod call;
pub mod feedback;
pub mod fingerprint;
pub mod health;
pub mod mutation;
pub mod outage;
pub mod pinning;
pub mod publish;
mod refused;
pub mod retry;
pub mod route;
mod span;
pub mod sweep;
pub mod task;
pub mod tools;
pub mod view;
pub mod window;

pub use redial_records::Time;
pub use route::{Route, route};
