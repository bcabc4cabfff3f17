//! What a run prints.

use std::io::Write as _;

/// Progress for the operator of the run.
pub(crate) fn note(text: &str) {
    let _nobody_watches = writeln!(std::io::stderr(), "{text}");
}

/// A part of the result.
pub(crate) fn println(text: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{text}")
}

/// With commas between thousands.
pub(crate) fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
