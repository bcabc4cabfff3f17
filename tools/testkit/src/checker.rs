//! The checker of the invariants: what is in the database, what was guaranteed to users and what tools did must agree,
//! whatever was killed meanwhile.
//!
//! Each invariant is broken by a test: by `tests/stack/mutations.rs` in the protocol, every night, or by
//! `tests/stack/end_to_end/checker.rs` in the evidence.

mod claims;
mod conversations;
mod evidence;
mod memory;
mod rules;
mod tasks;
mod violation;
mod walls;

pub use claims::{Claims, Disturbance};
pub use evidence::{AttemptFacts, CallFacts, Evidence};
pub use rules::check;
pub use tasks::TaskFacts;
pub use violation::{Invariant, Subject, Violation};
pub use walls::{Ear, Heard, canary};
