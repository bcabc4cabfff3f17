//! A simulation of the protocol: the engine that decides in production, among models of everything around it.
//!
//! A [`Plan`] is made of a seed: which calls and tasks there are, and what happens to them, faults included. Its history
//! is played in memory in microseconds; then the faults end, everything has to end by itself, and the invariants are
//! checked. A plan that breaks one is shrunk to a few moves and told as a list ([`shrink`], [`tell`]). Each [`Mutation`] is a
//! switch of the models that breaks the protocol, to see that it is found.
//!
//! The models follow `crates/store/sql`, `services/dispatcher` and `services/worker`: who changes a guard there changes
//! it here.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a history has a few calls, tasks and processes; random numbers are cut on purpose"
)]

mod mutation;
mod invariant;
mod plan;
mod random;
mod regressions;
mod run;
mod shrink;
mod world;

pub use mutation::Mutation;
pub use invariant::{Invariant, Violation};
pub use plan::{Kind, Move, Plan, Setup, size_of};
pub use random::Random;
pub use regressions::{Regression, regressions};
pub use run::{Failed, Run, Tally, find, play, tell};
pub use shrink::shrink;
