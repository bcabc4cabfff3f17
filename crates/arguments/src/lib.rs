//! Arguments of a call against the schema of its tool.
//!
//! [`Schema::compile`] runs once per tool, [`Schema::resolve`] for every call of a model: it makes lossless repairs,
//! records each of them, and refuses everything that would require a guess. [`Schema::check`] makes no repairs. A
//! refusal lists every broken rule at once, each with a JSON pointer, what was sent and what is allowed, so that a
//! model or a person can correct all of them together. Pure: no I/O, no clock, nothing async.

mod bounds;
mod closest;
mod coerce;
mod cost;
#[cfg(test)]
mod damaged;
mod describe;
mod document;
mod edit;
mod example;
mod excerpt;
mod expansion;
mod explain;
mod hints;
mod language;
mod location;
mod names;
mod parse;
mod pointer;
mod refusal;
mod resolve;
mod schema;
mod schema_error;
mod shape;
mod syntax;

pub use closest::closest;
pub use cost::Steps;
pub use names::{tool_name, tool_name_in};
pub use refusal::Refusal;
pub use resolve::{Repairs, Resolved};
pub use schema::Schema;
pub use schema_error::SchemaError;
