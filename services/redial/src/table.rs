//! Tables of text that fit a terminal. Ids and times stay whole; the other columns are shortened until a line fits.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::timeline::{Ink, Page};

/// Columns of a line where no terminal says how many it has.
const USUAL: usize = 80;
/// Between two columns.
const GAP: usize = 2;

/// Where a table is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paper {
    /// `None`: lines are as long as they need to be.
    width: Option<usize>,
    colours: bool,
}

impl Paper {
    /// Standard output: as wide as the terminal, or 80 columns; with `wide` without a limit.
    pub(crate) fn of_stdout(wide: bool) -> Self {
        let (width, colours) = Page::of_stdout().form();
        Self { width: (!wide).then_some(width.unwrap_or(USUAL)), colours }
    }

    #[cfg(test)]
    pub(crate) const fn test(width: Option<usize>) -> Self {
        Self { width, colours: false }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    head: &'static str,
    /// To what it may be shortened; `None`: not at all.
    least: Option<usize>,
}

impl Column {
    pub(crate) const fn whole(head: &'static str) -> Self {
        Self { head, least: None }
    }

    pub(crate) const fn shortened(head: &'static str, least: usize) -> Self {
        Self { head, least: Some(least) }
    }
}

/// What stands in a column of a row: one line of text without control characters.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    ink: Option<Ink>,
}

impl Cell {
    pub(crate) const fn new(text: String, ink: Ink) -> Self {
        Self { text, ink: Some(ink) }
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

/// A state in its colour.
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
    /// Columns that were printed before.
    shown: Vec<bool>,
    /// As wide as they were before, at least, so that parts stand below one another.
    widths: Vec<usize>,
}

impl Table {
    pub(crate) fn new(paper: Paper, columns: &[Column]) -> Self {
        let (shown, widths) = (vec![false; columns.len()], vec![0; columns.len()]);
        Self { paper, columns: columns.to_vec(), shown, widths }
    }

    /// The next rows as lines, without a newline at the end. The head is above the first ones, and again above those that
    /// have something in a column that was empty until then.
    pub(crate) fn part(&mut self, rows: &[Vec<Cell>]) -> String {
        let before = self.shown.clone();
        for (index, shown) in self.shown.iter_mut().enumerate() {
            *shown |= rows.iter().filter_map(|row| row.get(index)).any(|cell| !cell.text.is_empty());
        }
        let has_head = self.shown != before;
        let widths = self.measure(rows);
        let mut lines = Vec::with_capacity(rows.len() + 1);
        if has_head {
            let head: Vec<Cell> =
                self.columns.iter().map(|column| Cell::new(column.head.to_owned(), Ink::Bold)).collect();
            lines.push(self.row(&head, &widths));
        }
        lines.extend(rows.iter().map(|row| self.row(row, &widths)));
        lines.join("\n")
    }

    /// The widths of all columns for these rows.
    fn measure(&mut self, rows: &[Vec<Cell>]) -> Vec<usize> {
        for (index, width) in self.widths.iter_mut().enumerate() {
            let head = self.columns.get(index).map_or(0, |column| column.head.width());
            let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.text.width());
            *width = cells.chain([head, *width]).max().unwrap_or(0);
        }
        let Some(most) = self.paper.width else { return self.widths.clone() };
        let mut widths = self.widths.clone();
        let shown: Vec<usize> = (0..widths.len()).filter(|index| self.shown[*index]).collect();
        let line = shown.iter().map(|index| widths[*index]).sum::<usize>() + GAP * shown.len().saturating_sub(1);
        // Always the widest one, so that short texts stay whole.
        for _ in most..line {
            let room = |index: &usize| self.columns[*index].least.is_some_and(|least| widths[*index] > least);
            let Some(widest) = shown.iter().copied().filter(room).max_by_key(|index| widths[*index]) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    fn row(&self, row: &[Cell], widths: &[usize]) -> String {
        let mut line = String::new();
        let mut pad = 0;
        let shown = row.iter().zip(widths).zip(&self.shown).filter(|(_, shown)| **shown);
        for ((cell, width), _) in shown {
            line.push_str(&" ".repeat(pad));
            let text = cut(&cell.text, *width);
            pad = width.saturating_sub(text.width()) + GAP;
            match cell.ink.filter(|_| self.paper.colours && !text.is_empty()) {
                Some(ink) => line.push_str(&ink.paint(&text)),
                None => line.push_str(&text),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The start of a text in at most so many columns.
fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut width = 0;
    let fits = |c: &char| {
        width += c.width().unwrap_or(0);
        width < most
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
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
    fn a_wide_table_shortens_nothing_and_a_narrow_one_keeps_ids() {
        let long = "x".repeat(300);
        let row = [["01936b1c-0000-7000-8000-000000000001", "book", "timeout", &long]];
        assert!(Table::new(Paper::test(None), &COLUMNS).part(&rows(&row)).contains(&long));
        assert!(Table::new(Paper::test(Some(10)), &COLUMNS).part(&rows(&row)).contains(row[0][0]));
    }

    #[test]
    fn colours_do_not_count() {
        let paper = Paper { width: Some(80), colours: true };
        let text = Table::new(paper, &COLUMNS).part(&[vec!["1".into(), state("failed"), "".into(), "x".into()]]);
        assert!(text.ends_with("\n1   \u{1b}[31mfailed\u{1b}[0m  x"), "{text:?}");
    }
}
