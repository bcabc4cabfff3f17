//! What a run prints.

use std::io::Write as _;

/// Prints progress for the operator of the run.
pub(crate) fn note(text: &str) {
    let _nobody_watches = writeln!(std::io::stderr(), "{text}");
}

/// Prints a part of the result.
pub(crate) fn println(text: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{text}")
}
