//! A simulation of the protocol: the engine that decides in production, among small models of what is around it.
//!
//! A [`Plan`] is made from a seed: which calls and tasks there are, and what happens to them, faults included. Its
//! history is played in memory; then the faults end, everything must end by itself, and the invariants are checked. A
//! plan that violates one is shrunk to a few moves and logged ([`play`], [`describe`]). Each [`Mutation`] breaks the
//! protocol, in the engine or around it, to show that the simulation detects it.
//!
//! The models promise what Postgres and NATS promise, and no more: a transaction happens completely or not at all, a
//! guarded change happens only if its guard holds, messages are lost, late or repeated, and processes die between any
//! two steps. That the statements keep these promises is tested on Postgres (`crates/store/tests`, `tests/stack/mutations`);
//! how many jobs are on the streams, in `crates/engine/tests`.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a history has a few calls, tasks and processes; random numbers are truncated on purpose"
)]

mod invariant;
mod mutation;
mod plan;
mod random;
mod run;
mod world;

pub use invariant::{Invariant, Violation};
pub use mutation::Mutation;
pub use plan::{Move, MoveKind, Plan, Setup, size_of};

pub use run::{Failed, Run, Tally, describe, play};
