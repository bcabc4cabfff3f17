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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([1, 999, 1_000, 5_000_000].map(grouped), ["1", "999", "1,000", "5,000,000"]);
    }
}
