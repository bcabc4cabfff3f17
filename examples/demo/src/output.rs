//! What the demo prints.

use std::io::{IsTerminal, Write};

use chrono::TimeDelta;

/// Writes a line to standard output. A closed pipe (`| head`) is not an error.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Writes a line to standard error.
pub(crate) fn error_line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}

/// Shows which scenario is running; only on a terminal, where [`result`] overwrites it.
pub(crate) fn progress(number: usize, title: &str) {
    let mut stdout = std::io::stdout();
    if stdout.is_terminal() {
        let _ = write!(stdout, "… {number:>2} {title}").and_then(|()| stdout.flush());
    }
}

/// Prints how a scenario ended, in one line.
pub(crate) fn result(number: usize, title: &str, result: Result<&str, &str>, seconds: f64) {
    let (mark, colour, text) = match result {
        Ok(text) => ("✓", 32, text),
        Err(text) => ("✗", 31, text),
    };
    let rest = format!("{number:>2} {title:<15}  {text}  ({seconds:.1} s)");
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match (std::io::stdout().is_terminal(), no_colour) {
        (true, false) => line(format!("\r\x1b[K\x1b[{colour}m{mark}\x1b[0m {rest}")),
        (true, true) => line(format!("\r\x1b[K{mark} {rest}")),
        (false, _) => line(format!("{mark} {rest}")),
    }
}

/// `1.25 s`.
pub(crate) fn seconds(time: TimeDelta) -> String {
    format!("{:.2} s", time.as_seconds_f64())
}
