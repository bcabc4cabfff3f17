//! Tables of text that fit a terminal. Ids and times stay whole; the other columns are shortened until a line fits.

use comfy_table::{Attribute, Color, ColumnConstraint, ContentArrangement, Row, Width, presets::NOTHING};

use crate::timeline::{Ink, Page};

/// Columns of a line where no terminal says how many it has.
const USUAL: usize = 80;
/// Between two columns.
const GAP: u16 = 2;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Paper {
    /// `None`: lines are as long as they need to be.
    width: Option<usize>,
    colours: bool,
}

impl Paper {
    /// Makes the paper of standard output: as wide as the terminal, or 80 columns; with `wide` without a limit.
    pub(crate) fn of_stdout(wide: bool) -> Self {
        let (width, colours) = Page::of_stdout().form();
        Self { width: (!wide).then_some(width.unwrap_or(USUAL)), colours }
    }

    fn table(self) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).force_no_tty();
        if self.colours {
            table.enforce_styling();
        }
        if let Some(width) = self.width {
            let width = u16::try_from(width).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        table
    }

    #[cfg(test)]
    pub(crate) const fn test(width: Option<usize>) -> Self {
        Self { width, colours: false }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    head: &'static str,
    /// To what it may be shortened; `None`: not at all.
    least: Option<u16>,
}

impl Column {
    pub(crate) const fn whole(head: &'static str) -> Self {
        Self { head, least: None }
    }

    pub(crate) const fn shortened(head: &'static str, least: u16) -> Self {
        Self { head, least: Some(least) }
    }
}

/// One line of text without control characters.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    ink: Option<Ink>,
}

impl Cell {
    pub(crate) const fn new(text: String, ink: Ink) -> Self {
        Self { text, ink: Some(ink) }
    }

    fn styled(&self) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(&self.text);
        match self.ink {
            None => cell,
            Some(Ink::Bold) => cell.add_attribute(Attribute::Bold),
            Some(Ink::Dim) => cell.add_attribute(Attribute::Dim),
            Some(Ink::Red) => cell.fg(Color::DarkRed),
            Some(Ink::Green) => cell.fg(Color::DarkGreen),
            Some(Ink::Yellow) => cell.fg(Color::DarkYellow),
            Some(Ink::Cyan) => cell.fg(Color::DarkCyan),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ink: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

pub(crate) fn state(state: &str) -> Cell {
    let ink = match state {
        "succeeded" | "alive" | "served" | "valid" => Ink::Green,
        "failed" | "unknown" | "refused" | "dead" | "failing" | "no worker" | "revoked" => Ink::Red,
        "cancelled" | "retry_wait" | "draining" | "recovering" | "expired" => Ink::Yellow,
        _ => Ink::Cyan,
    };
    Cell::new(state.to_owned(), ink)
}

/// A table that is printed in one or several parts.
pub(crate) struct Table {
    paper: Paper,
    columns: Vec<Column>,
    shown: Vec<bool>,
    /// As wide as they were before, at least, so that parts stand below one another.
    widths: Vec<u16>,
}

impl Table {
    pub(crate) fn new(paper: Paper, columns: &[Column]) -> Self {
        let (shown, widths) = (vec![false; columns.len()], vec![0; columns.len()]);
        Self { paper, columns: columns.to_vec(), shown, widths }
    }

    /// Returns the next rows as lines, without a newline at the end. The head is above the first ones, and again above
    /// those that have something in a column that was empty until then.
    pub(crate) fn part(&mut self, rows: &[Vec<Cell>]) -> String {
        let before = self.shown.clone();
        for (index, shown) in self.shown.iter_mut().enumerate() {
            *shown |= rows.iter().filter_map(|row| row.get(index)).any(|cell| !cell.text.is_empty());
        }
        let has_head = self.shown != before;
        let shown = |index: &usize| self.shown[*index];
        let shown: Vec<usize> = (0..self.columns.len()).filter(shown).collect();
        let mut table = self.paper.table();
        if has_head {
            let head = |index: &usize| Cell::new(self.columns[*index].head.to_owned(), Ink::Bold).styled();
            table.add_row(shown.iter().map(head));
        }
        for row in rows {
            let mut line = Row::from(shown.iter().filter_map(|index| row.get(*index)).map(Cell::styled));
            line.max_height(1);
            table.add_row(line);
        }
        let found = table.column_max_content_widths();
        let last = shown.len().saturating_sub(1);
        for (place, (index, found)) in shown.iter().zip(found).enumerate() {
            self.widths[*index] = self.widths[*index].max(found);
            let gap = if place == last { 0 } else { GAP };
            let Some(column) = table.column_mut(place) else { continue };
            column.set_padding((0, gap));
            // Constraints count the padding.
            let upper = Width::Fixed(self.widths[*index].saturating_add(gap));
            let shortened = self.columns[*index].least.filter(|_| self.paper.width.is_some());
            column.set_constraint(shortened.map_or(ColumnConstraint::Absolute(upper), |shortened| {
                let lower = Width::Fixed(shortened.min(self.widths[*index]).saturating_add(gap));
                ColumnConstraint::Boundaries { lower, upper }
            }));
        }
        table.trim_fmt()
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    const COLUMNS: [Column; 4] =
        [Column::whole("id"), Column::shortened("tool", 6), Column::whole("class"), Column::shortened("text", 8)];

    fn rows(texts: &[[&str; 4]]) -> Vec<Vec<Cell>> {
        texts.iter().map(|row| row.iter().map(|text| Cell::from(*text)).collect()).collect()
    }

    #[test]
    fn long_texts_are_shortened_until_a_line_fits() {
        let mut table = Table::new(Paper::test(Some(40)), &COLUMNS);
        let long = "订机票".repeat(9);
        let text = table.part(&rows(&[["0193", "book", "", &long], ["0194", "a_tool_with_a_long_name", "", "x"]]));
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert!(!text.contains("class") && text.contains("0194  a_tool"), "{text}");
        let next = table.part(&rows(&[["0195", "book", "", "y"]]));
        assert_eq!(next.lines().count(), 1, "the head is printed once: {next}");
        let next = table.part(&rows(&[["0196", "book", "timeout", "y"]]));
        assert!(next.starts_with("id") && next.contains("class"), "{next}");
    }

    #[test]
    fn a_table_that_is_too_narrow_keeps_ids() {
        let row = [["01936b1c-0000-7000-8000-000000000001", "book", "timeout", ""]];
        assert!(Table::new(Paper::test(Some(10)), &COLUMNS).part(&rows(&row)).contains(row[0][0]));
    }

    #[test]
    fn colours_do_not_count() {
        let paper = Paper { width: Some(80), colours: true };
        let text = Table::new(paper, &COLUMNS).part(&[vec!["1".into(), state("failed"), "".into(), "x".into()]]);
        assert!(text.ends_with("\n1   \u{1b}[38;5;1mfailed  \u{1b}[39mx"), "{text:?}");
    }
}
