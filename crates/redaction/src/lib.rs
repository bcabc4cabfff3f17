//! Removes what must not be stored or shown from results and errors of tools and models. Pure.
//!
//! Results of tools lose only secrets that were declared, as [`Secrets`]: they may be about anything. Errors also lose keys that
//! are shown in part, such as `sk-abc…1234`, and what [`scrub()`] finds by rules.

mod find;
mod forms;
mod inherited;
mod io_kind;
mod keys;
mod scrub;
mod secrets;

pub use inherited::secrets_of_variable;
pub use io_kind::io_kind;
pub use scrub::{Known, redact_failure, reveals_secret, scrub};
pub use secrets::Secrets;
