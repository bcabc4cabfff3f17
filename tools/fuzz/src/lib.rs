//! Damaged and hostile inputs for every decoder of external data: messages of workers and users, answers of
//! models, files.
//!
//! [`run`] takes good documents and damaged ones that once caused a failure, damages them further at random, and feeds
//! them to their decoders: each is read or refused, without a panic. [`growth`] feeds short and long inputs that are
//! costly for some decoder: time may grow with the length and no faster. A seed decides every input of a run.

mod corpus;
mod damage;
mod growth;
mod run;
mod targets;

pub use growth::{Growth, grows, growth};
pub use run::{Counts, Finding, Outcome, Run, run, run_with};
pub use targets::{Decoder, TARGETS, Target};
