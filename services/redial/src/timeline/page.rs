//! The layout of a timeline: its width, its columns and its colours.

use std::io::IsTerminal;

use comfy_table::Table;

use super::{
    entry::{Entry, Event, Ink},
    wrap::Wrap,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Columns; `None` for a file or a pipe, where lines are not broken.
    width: Option<usize>,
    /// Only for terminals.
    colours: bool,
    /// Columns of an event's time.
    time: usize,
}

/// Columns of a time as an offset, and as a point in time with its offset.
const OFFSET: usize = 11;
const TIME_AND_OFFSET: usize = 39;
/// Columns of a label.
const LABEL: usize = 14;
/// With fewer columns than this beside it, an event's time stands on a line of its own.
const NARROW: usize = 49;
/// No page is treated as narrower than this.
const NARROWEST: usize = 16;

impl Page {
    pub(crate) fn of_stdout() -> Self {
        Self::of(&Table::new(), std::io::stdout().is_terminal())
    }

    pub(crate) fn of_stderr() -> Self {
        let mut table = Table::new();
        table.use_stderr();
        Self::of(&table, std::io::stderr().is_terminal())
    }

    fn of(table: &Table, terminal: bool) -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
        let width = table.width().filter(|_| terminal).map(|width| usize::from(width).max(NARROWEST));
        Self { width, colours: terminal && !plain, time: OFFSET }
    }

    #[cfg(test)]
    pub(crate) fn test(width: Option<usize>, colours: bool) -> Self {
        Self { width, colours, time: OFFSET }
    }

    /// Returns its columns and whether it has colours.
    pub(crate) const fn form(self) -> (Option<usize>, bool) {
        (self.width, self.colours)
    }

    /// Makes room for points in time beside the offsets.
    pub(crate) fn with_points_in_time(self) -> Self {
        Self { time: TIME_AND_OFFSET, ..self }
    }

    /// Renders an event with a newline at its end; nothing if it has no entries.
    pub(crate) fn event(self, event: &Event) -> String {
        let times = std::iter::once(event.time.as_str()).chain(std::iter::repeat(""));
        times.zip(&event.entries).map(|(time, entry)| self.entry(time, entry)).collect()
    }

    fn entry(self, time: &str, entry: &Entry) -> String {
        let (mut text, mut wrap) = self.begin(time, &entry.label, entry.ink);
        text.push_str(&wrap.push(&entry.text));
        text.push_str(&wrap.finish());
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    /// Renders the start of an entry whose text follows.
    pub(crate) fn begin(self, time: &str, label: &str, ink: Ink) -> (String, Wrap) {
        let coloured = self.ink(label, ink);
        if self.is_narrow() {
            let time = if time.is_empty() { String::new() } else { format!("{}\n", self.ink(time, Ink::Dim)) };
            return (format!("{time}{coloured}  "), Wrap::new(self.width, 2, label.len() + 2));
        }
        let time = format!("{time:>width$}", width = self.time);
        let pad = LABEL.saturating_sub(label.len()).max(1);
        let start = format!("{}  {coloured}{:pad$}", self.ink(&time, Ink::Dim), "");
        let indent = self.time + 2;
        (start, Wrap::new(self.width, indent + LABEL, indent + label.len() + pad))
    }

    /// Renders a line across the page.
    pub(crate) fn title(self, text: &str) -> String {
        let mut wrap = Wrap::new(self.width, 2, 0);
        let text = wrap.push(text) + &wrap.finish();
        self.ink(&text, Ink::Bold) + "\n"
    }

    /// Renders a field of a task or a call on a line.
    pub(crate) fn field(self, name: &str, value: &str) -> String {
        let (indent, column) = if self.is_narrow() { (2, name.len() + 2) } else { (LABEL, LABEL) };
        let mut wrap = Wrap::new(self.width, indent, column);
        let value = wrap.push(value) + &wrap.finish();
        let gap = if value.starts_with('\n') { 0 } else { column.saturating_sub(name.len()) };
        format!("{}{:gap$}{value}\n", self.ink(name, Ink::Dim), "")
    }

    fn is_narrow(self) -> bool {
        self.width.is_some_and(|width| width < self.time + NARROW)
    }

    fn ink(self, text: &str, ink: Ink) -> String {
        if !self.colours || text.trim().is_empty() {
            return text.to_owned();
        }
        ink.paint(text)
    }
}
