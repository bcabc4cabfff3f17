//! A simulation of the protocol: the engine that decides in production, among models of everything around it.
//!
//! A [`Plan`] is made from a seed: which calls and tasks there are, and what happens to them, faults included. Its
//! history is played in memory; then the faults end, everything must end by itself, and the invariants are checked. A
//! plan that violates one is shrunk to a few moves and logged ([`shrink`], [`describe`]). Each [`Mutation`] breaks the
//! protocol, in the engine or in a model, to show that the simulation detects it.
//!
//! The engine plans transitions and effects, and notices outages. The models keep the tables, carry out transitions
//! and effects as `crates/store/sql` and `services/dispatcher` do, and cause the faults: a change of a guard there
//! needs the same change here.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a history has a few calls, tasks and processes; random numbers are truncated on purpose"
)]

mod invariant;
mod mutation;
mod plan;
mod random;
mod regressions;
mod run;
mod scale;
mod shrink;
mod world;

pub use invariant::{Invariant, Violation};
pub use mutation::Mutation;
pub use plan::{Move, MoveKind, Plan, Setup, size_of};
pub use random::Random;
pub use regressions::{Regression, regressions};
pub use run::{Failed, Run, Tally, describe, find, play};
pub use scale::{Report, report};
pub use shrink::shrink;
