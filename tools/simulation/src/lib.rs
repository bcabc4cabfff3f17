//! A simulation of the protocol: the engine that decides in production, among models of everything around it.
//!
//! A [`Plan`] is made from a seed: which calls and tasks there are, and what happens to them, faults included. Its
//! history is played in memory in microseconds; then the faults end, everything has to end by itself, and the
//! invariants are checked. A plan that breaks one is shrunk to a few moves and printed as a list ([`shrink`], [`tell`]).
//! Each [`Mutation`] breaks the protocol, in the engine or in a model, to see that the simulation finds it.
//!
//! The engine plans transitions and effects, and notices outages. The models keep the tables, carry out transitions
//! and effects as `crates/store/sql` and `services/dispatcher` do, and bring the faults: a change of a guard there
//! needs the same change here.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a history has a few calls, tasks and processes; random numbers are cut on purpose"
)]

mod invariant;
mod mutation;
mod plan;
mod random;
mod regressions;
mod run;
mod shrink;
mod world;

pub use invariant::{Invariant, Violation};
pub use mutation::Mutation;
pub use plan::{Move, MoveKind, Plan, Setup, size_of};
pub use random::Random;
pub use regressions::{Regression, regressions};
pub use run::{Failed, Run, Tally, describe, find, play};
pub use shrink::shrink;
