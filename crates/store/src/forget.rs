//! Erases a conversation, or everything of a tenant: in transactions of bounded size, each of which also writes into the
//! tombstone how far it came.
//!
//! What a tombstone promises, and how:
//! - Only what was submitted before its time is erased, and all of that. Work that was under way at that time is over before
//!   anything is deleted ([`Store::writers_are_gone`]).
//! - Nothing that has not ended is deleted, so every guard of every other statement stays true.
//! - Nothing of it comes back: a redrive writes only if its call is on record and not about to be erased, a late report and a
//!   dead letter keep their content only while the calls that they name are on record. These statements lock those calls, and
//!   a step here locks calls before it deletes what belongs to them.

mod calls;
mod letters;
mod look;
mod open;
mod progress;
mod scope;
mod statistics;
mod step;
mod tasks;
mod tokens;
mod tombstone;
mod webhooks;

pub use letters::CountedLetters;
pub use look::CountedCalls;
pub use open::{OpenCalls, OpenTask};
pub use scope::Scope;
pub use tasks::{CountedTasks, TaskPosition};
pub use tombstone::{Begun, NewErasure, Phase, Tombstone};
