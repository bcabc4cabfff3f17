//! Output: tables and lines of text, or lines of JSON.

use std::io::{IsTerminal, Write};

use chrono::{DateTime, Utc};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets::NOTHING};
use serde::Serialize;

/// Writes a line to standard output. A closed pipe, as with `| head`, is not an error.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string(value)?);
    Ok(())
}

/// Writes a line to standard error, for what is not part of the result.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}

/// Columns up to this width are never wrapped, so that ids and times stay whole. An id has 36 characters.
const UNBROKEN: u16 = 40;

/// A table with a header and no borders. On a terminal long texts are wrapped to its width.
pub(crate) fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(head.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        let widths = table.column_max_content_widths();
        for (column, _) in table.column_iter_mut().zip(widths).filter(|(_, width)| *width <= UNBROKEN) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.trim_fmt()
}

/// A point in time, to the millisecond.
pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S%.3fZ").to_string()
}

/// A number of ms for people.
pub(crate) fn span(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Escapes control characters in text from outside, because a terminal would obey them. Newlines stay.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => plain.push(' '),
            c if c.is_control() && c != '\n' => plain.extend(c.escape_default()),
            c => plain.push(c),
        }
    }
    plain
}

/// The start of a text as one line of at most `most` characters.
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
    fn one_line_is_cut_by_characters() {
        assert_eq!(one_line("  订  机\n票 ", 5), "订 机 票");
        assert_eq!(one_line("订机票订机票", 5), "订机票订…");
    }
}
