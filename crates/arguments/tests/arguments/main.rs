//! Damaged and wrong arguments: what runs, what is refused, and in which words.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod check;
mod corpus;
mod resolve;
mod schema_memory;
