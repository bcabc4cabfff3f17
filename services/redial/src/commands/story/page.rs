//! What a story is written on: so wide, with or without colours.

use std::io::IsTerminal;

use comfy_table::Table;

use super::wrap::Wrap;

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Columns; `None` where lines are not broken: in a file or a pipe.
    pub(crate) width: Option<usize>,
    /// Colours, for terminals only.
    pub(crate) colours: bool,
}

/// The colour of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// What stands around.
    Dim,
    /// What is said and done.
    Bold,
    /// What went well.
    Green,
    /// What was or will be put right.
    Yellow,
    /// What went wrong.
    Red,
    /// What a model does.
    Cyan,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) label: String,
    pub(crate) ink: Ink,
    pub(crate) text: String,
}

impl Entry {
    pub(crate) fn new(label: impl Into<String>, ink: Ink, text: impl Into<String>) -> Self {
        Self { label: label.into(), ink, text: text.into() }
    }
}

/// Columns of an offset and of a label.
const OFFSET: usize = 11;
const LABEL: usize = 14;
/// On a page narrower than this, offsets stand on lines of their own.
const NARROW: usize = 60;
/// No page is treated as narrower than this.
const NARROWEST: usize = 16;

impl Page {
    /// Standard output.
    pub(crate) fn of_stdout() -> Self {
        Self::of(&Table::new(), std::io::stdout().is_terminal())
    }

    /// Standard error.
    pub(crate) fn of_stderr() -> Self {
        let mut table = Table::new();
        table.use_stderr();
        Self::of(&table, std::io::stderr().is_terminal())
    }

    fn of(table: &Table, terminal: bool) -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
        let width = table.width().filter(|_| terminal).map(|width| usize::from(width).max(NARROWEST));
        Self { width, colours: terminal && !plain }
    }

    /// What happened at one time, a line or more for each thing.
    pub(crate) fn paragraph(self, offset: &str, entries: &[Entry]) -> String {
        let mut text = String::new();
        for (n, entry) in entries.iter().enumerate() {
            text.push_str(&self.entry(if n == 0 { offset } else { "" }, entry));
        }
        text
    }

    /// One thing that happened, with a newline at the end.
    fn entry(self, offset: &str, entry: &Entry) -> String {
        let (mut text, mut wrap) = self.begin(offset, &entry.label, entry.ink);
        text.push_str(&wrap.push(&entry.text));
        text.push_str(&wrap.finish());
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    /// The start of an entry whose text follows.
    pub(crate) fn begin(self, offset: &str, label: &str, ink: Ink) -> (String, Wrap) {
        let coloured = self.ink(label, ink);
        if self.is_narrow() {
            let time = if offset.is_empty() { String::new() } else { format!("{}\n", self.ink(offset, Ink::Dim)) };
            return (format!("{time}{coloured}  "), Wrap::new(self.width, 2, label.len() + 2));
        }
        let time = format!("{offset:>OFFSET$}");
        let pad = LABEL.saturating_sub(label.len()).max(1);
        let indent = OFFSET + 2 + LABEL;
        let start = format!("{}  {coloured}{:pad$}", self.ink(&time, Ink::Dim), "");
        (start, Wrap::new(self.width, indent, OFFSET + 2 + label.len() + pad))
    }

    /// A line across the page.
    pub(crate) fn title(self, text: &str) -> String {
        let mut wrap = Wrap::new(self.width, 2, 0);
        let text = wrap.push(text) + &wrap.finish();
        self.ink(&text, Ink::Bold) + "\n"
    }

    /// A line of a head: a name and its value.
    pub(crate) fn field(self, name: &str, value: &str) -> String {
        let (indent, column) = if self.is_narrow() { (2, name.len() + 2) } else { (LABEL, LABEL) };
        let mut wrap = Wrap::new(self.width, indent, column);
        let value = wrap.push(value) + &wrap.finish();
        let gap = if value.starts_with('\n') { 0 } else { column.saturating_sub(name.len()) };
        format!("{}{:gap$}{value}\n", self.ink(name, Ink::Dim), "")
    }

    fn is_narrow(self) -> bool {
        self.width.is_some_and(|width| width < NARROW)
    }

    /// A text in a colour, if the page has colours.
    pub(crate) fn ink(self, text: &str, ink: Ink) -> String {
        if !self.colours || text.trim().is_empty() {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Dim => "2",
            Ink::Bold => "1",
            Ink::Green => "32",
            Ink::Yellow => "33",
            Ink::Red => "31",
            Ink::Cyan => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
