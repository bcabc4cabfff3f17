//! Arguments of a call against the schema of its tool.
//!
//! [`Schema::compile`] once per tool, [`Schema::check`] for every call. A refusal lists every broken rule at once, each
//! with a JSON pointer, what was sent and what is allowed, so that a model or a person can correct all of them in one
//! go. Pure: no I/O, no clock, nothing async.

mod closest;
mod describe;
mod explain;
mod hints;
mod parse;
mod pointer;
mod refusal;
mod schema;

pub use closest::closest;
pub use refusal::Refusal;
pub use schema::{Schema, SchemaError};
