//! Progress for the operator of the run.

use std::io::Write as _;

/// Writes progress to standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A part of the result.
pub(crate) fn println(text: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{text}")
}
