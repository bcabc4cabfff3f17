//! What users see: tables for people, JSON lines for machines.

use std::io::{IsTerminal, Write};

use chrono::{DateTime, Utc};
use comfy_table::{ContentArrangement, Table, presets::NOTHING};
use serde::Serialize;

/// Writes a line to standard output. A reader that went away (`| head`) is no error.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string(value)?);
    Ok(())
}

/// Writes to standard error: what is not the result.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}

/// A table with a head and no lines; as wide as the terminal, or as wide as it wants in a pipe.
pub(crate) fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(head.iter().copied());
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for row in rows {
        table.add_row(row);
    }
    table.trim_fmt()
}

/// A point in time, to the millisecond.
pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S%.3fZ").to_string()
}

/// A number of ms as people read it.
pub(crate) fn span(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}
