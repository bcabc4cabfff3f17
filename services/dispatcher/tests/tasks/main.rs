//! Tasks on real servers: the dispatcher's part of the agent loop, with scripted models and tools.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

mod failing;
mod large;
mod outcomes;
mod replayed;
mod script;
mod submission;
