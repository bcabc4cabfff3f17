//! Output: the one place that writes to standard output and standard error, and the forms of times and texts.

use std::{
    borrow::Cow,
    io::{ErrorKind, IsTerminal as _, Write},
};

use chrono::{DateTime, TimeDelta, Utc};
use redial_telemetry::{visible, visible_in_colour, visible_json};
use serde::Serialize;

/// Standard output could not be written: what a reader has is incomplete. It ends every command.
#[derive(Debug, thiserror::Error)]
#[error("standard output could not be written: {0}; what was written is incomplete")]
pub(crate) struct WriteError(#[from] std::io::Error);

impl WriteError {
    /// Returns true if the reader closed the pipe, as `head` does: it has what it wanted.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.0.kind() == ErrorKind::BrokenPipe
    }
}

/// Writes text to standard output. Here and in all of these, what a terminal would obey is written out, but for colours on
/// a terminal: whatever was printed without a look at it does no harm.
pub(crate) fn write(text: &str) -> Result<(), WriteError> {
    let mut out = std::io::stdout().lock();
    out.write_all(shown(text, out.is_terminal()).as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a line to standard output.
pub(crate) fn line(text: impl AsRef<str>) -> Result<(), WriteError> {
    let mut out = std::io::stdout().lock();
    out.write_all(shown(text.as_ref(), out.is_terminal()).as_bytes())?;
    // The newline ends what the library buffers.
    Ok(out.write_all(b"\n")?)
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(json_text(&serde_json::to_string(value)?)?)
}

/// Writes JSON text as a line: the same value, with what a terminal would obey as escape sequences of JSON.
pub(crate) fn json_text(json: &str) -> Result<(), WriteError> {
    line(visible_json(json))
}

/// Writes a line to standard output, and goes on if nobody can read it: a service does not end for that.
pub(crate) fn announce(text: impl AsRef<str>) {
    let _unread = line(text);
}

/// Writes what is not part of the result to standard error; if that fails, there is nowhere left to say so.
pub(crate) fn note(text: impl AsRef<str>) {
    note_text(&format!("{}\n", text.as_ref()));
}

/// Writes text to standard error.
pub(crate) fn note_text(text: &str) {
    let mut out = std::io::stderr().lock();
    let text = shown(text, out.is_terminal());
    let _nowhere_to_say = out.write_all(text.as_bytes());
}

fn shown(text: &str, colours: bool) -> Cow<'_, str> {
    if colours { visible_in_colour(text) } else { visible(text) }
}

/// Writes a point in time, to the millisecond.
pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S%.3fZ").to_string()
}

/// Writes a number of ms for people, rounded to the smallest unit that is shown.
pub(crate) fn span(ms: i64) -> String {
    let [tenths, seconds, minutes, hours] = [100, 1_000, 60_000, 3_600_000].map(|unit| rounded(ms, unit));
    match ms {
        ..1_000 => format!("{ms} ms"),
        _ if tenths < 600 => format!("{}.{} s", tenths / 10, tenths % 10),
        _ if seconds < 3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ if minutes < 48 * 60 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// Says how long ago something was, or how soon it will be, in one unit, rounded to it: of the unit there are always at
/// least two, or it is seconds. After two weeks the day.
pub(crate) fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let since = now - at;
    let ms = since.num_milliseconds().saturating_abs();
    if rounded(ms, 1_000) == 0 {
        return "now".to_owned();
    }
    if rounded(ms, 86_400_000) >= 14 {
        return at.format("%Y-%m-%d").to_string();
    }
    let text = in_one_unit(ms);
    if since < TimeDelta::zero() { format!("in {text}") } else { format!("{text} ago") }
}

/// Writes an inexact number of ms, for people: up to a minute as [`span`], then in one unit, rounded to it.
pub(crate) fn about(ms: i64) -> String {
    if rounded(ms, 100) < 600 { span(ms) } else { in_one_unit(ms) }
}

fn in_one_unit(ms: i64) -> String {
    match [1_000, 60_000, 3_600_000, 86_400_000].map(|unit| rounded(ms, unit)) {
        [seconds @ ..120, ..] => format!("{seconds} s"),
        [_, minutes @ ..120, ..] => format!("{minutes} min"),
        [_, _, hours @ ..48, _] => format!("{hours} h"),
        [.., days] => format!("{days} d"),
    }
}

fn rounded(ms: i64, unit: i64) -> i64 {
    ms.saturating_add(unit / 2) / unit
}

/// Makes text from outside printable: what a terminal would obey is written out, colours included. Newlines stay.
pub(crate) fn plain(text: &str) -> String {
    visible(text).replace('\t', " ")
}

/// Returns the start of a text as one line of at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let text = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\x1b[31mb\r\u{9b}c\td\ne"), "a\\u{1b}[31mb\\r\\u{9b}c d\ne");
    }

    #[test]
    fn spans_are_rounded_to_what_is_shown() {
        for (ms, shown) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_049, "1.0 s"),
            (1_050, "1.1 s"),
            (59_949, "59.9 s"),
            (59_950, "1 min 0 s"),
            (83_456, "1 min 23 s"),
            (83_500, "1 min 24 s"),
            (3_599_499, "59 min 59 s"),
            (3_599_500, "1 h 0 min"),
            (3_629_999, "1 h 0 min"),
            (3_630_000, "1 h 1 min"),
            (172_769_999, "47 h 59 min"),
            (172_770_000, "2 d 0 h"),
            (9_999 * 3_600_000, "416 d 15 h"),
        ] {
            assert_eq!(span(ms), shown, "{ms}");
        }
    }

    #[test]
    fn what_is_not_exact_has_one_unit() {
        let shown = [999, 1_990, 59_949, 59_950, 85_400, 119_500, 7_170_000, i64::MAX].map(about);
        assert_eq!(shown[..7], ["999 ms", "2.0 s", "59.9 s", "60 s", "85 s", "2 min", "2 h"]);
        assert!(shown[7].ends_with(" d"), "{shown:?}");
    }

    #[test]
    fn an_age_is_rounded_to_one_unit() {
        let at: DateTime<Utc> = "2026-11-20T08:00:00Z".parse().unwrap();
        for (ms, shown) in [
            (-90_400, "in 90 s"),
            (499, "now"),
            (500, "1 s ago"),
            (119_499, "119 s ago"),
            (119_500, "2 min ago"),
            (200_000, "3 min ago"),
            (7_169_999, "119 min ago"),
            (7_170_000, "2 h ago"),
            (170_999_999, "47 h ago"),
            (171_000_000, "2 d ago"),
            (14 * 86_400_000, "2026-11-20"),
        ] {
            assert_eq!(ago(at, at + TimeDelta::milliseconds(ms)), shown, "{ms}");
        }
    }

    #[test]
    fn one_line_is_cut_by_characters() {
        assert_eq!(one_line("  订  机\n票 ", 5), "订 机 票");
        assert_eq!(one_line("订机票订机票", 5), "订机票订…");
    }
}
