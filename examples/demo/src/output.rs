//! What the spectator sees.

use std::io::{IsTerminal, Write};

/// Writes a line to standard output. A reader that went away (`| head`) is no error.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Writes a line to standard error.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}

/// Says what is going on now; on a terminal only, where [`verdict`] takes its place.
pub(crate) fn under_way(number: usize, title: &str) {
    let mut stdout = std::io::stdout();
    if stdout.is_terminal() {
        let _ = write!(stdout, "… {number:>2} {title}").and_then(|()| stdout.flush());
    }
}

/// How a scene went: one line, with a mark, and coloured for people.
pub(crate) fn verdict(number: usize, title: &str, result: Result<&str, &str>, seconds: f64) {
    let (mark, colour, text) = match result {
        Ok(text) => ("✓", 32, text),
        Err(text) => ("✗", 31, text),
    };
    let rest = format!("{number:>2} {title:<15}  {text}  ({seconds:.1} s)");
    let coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    match (std::io::stdout().is_terminal(), coloured) {
        (true, true) => line(format!("\r\x1b[K\x1b[{colour}m{mark}\x1b[0m {rest}")),
        (true, false) => line(format!("\r\x1b[K{mark} {rest}")),
        (false, _) => line(format!("{mark} {rest}")),
    }
}
