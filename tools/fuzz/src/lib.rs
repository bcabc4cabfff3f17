//! Damaged and hostile inputs for every decoder of what comes from outside: messages of workers and users, answers of
//! models, files.
//!
//! [`run`] takes good documents and the damaged ones that were once found, damages them further at random, and feeds
//! them to their decoders: each is read or refused, without a panic. [`growth`] feeds ever longer inputs that are meant
//! to hurt: time may grow with the length and no faster. Both are repeatable by their seed.

mod corpus;
mod damage;
mod growth;
mod random;
mod run;
mod targets;

pub use growth::{Growth, grows, growth};
pub use run::{Counts, Finding, Outcome, Run, run, run_with};
pub use targets::{Decoder, TARGETS, Target};
