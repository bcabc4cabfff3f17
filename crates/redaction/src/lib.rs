//! Removes what must not be stored or shown from results and errors of tools and models. Pure.
//!
//! Only errors lose keys that nobody declared and keys that are shown in part, such as `sk-abc…1234`: results of tools
//! may be about anything.
//!
//! The order matters for a failure: first [`Secrets::redact_failure`], because a secret may contain a host, then
//! [`hosts::redact_failure`], which also cuts the message: a cut before it could leave half a host name, which no rule
//! recognizes.

mod find;
mod forms;
pub mod hosts;
mod inherited;
mod io_kind;
mod keys;
mod secrets;

pub use inherited::{is_public_variable, secrets_of_variable};
pub use io_kind::io_kind;
pub use secrets::Secrets;
