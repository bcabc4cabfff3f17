//! Tables, as text and as JSON.

use std::fmt;

use serde_json::{Value, json};

/// One table.
pub(super) struct Table {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// One cell.
pub(super) enum Cell {
    Text(String),
    Number(f64),
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(|| Self::from("too many"), Into::into)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => f.write_str(&number_text(*number)),
        }
    }
}

impl Table {
    pub(super) fn new(title: impl Into<String>, columns: Vec<&'static str>) -> Self {
        Self { title: title.into(), columns, rows: Vec::new() }
    }

    pub(super) fn add(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    pub(super) fn to_json(&self) -> Value {
        let cell = |cell: &Cell| match cell {
            Cell::Text(text) => json!(text),
            Cell::Number(number) => json!(number),
        };
        let rows: Vec<Vec<Value>> = self.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        json!({ "title": self.title, "columns": self.columns, "rows": rows })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(Cell::to_string).collect()).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|n| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or(0).max(self.columns[n].len()))
            .collect();
        write!(f, "{}", self.title)?;
        let head: Vec<String> = self.columns.iter().map(|&column| column.to_owned()).collect();
        for row in [&head].into_iter().chain(&rows) {
            let mut line = String::new();
            for (n, text) in row.iter().enumerate() {
                let is_text = self.rows.first().is_some_and(|row| matches!(row[n], Cell::Text(_)));
                let gap = " ".repeat(widths[n] - text.chars().count());
                line.push_str("  ");
                line.push_str(&if is_text { format!("{text}{gap}") } else { format!("{gap}{text}") });
            }
            write!(f, "\n{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Whole numbers with commas, small ones with one or two digits behind the point.
pub(super) fn number_text(number: f64) -> String {
    let text = match number {
        _ if number.fract() == 0.0 || number >= 100.0 => format!("{number:.0}"),
        _ if number >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    };
    let (digits, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut with_commas = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            with_commas.push(',');
        }
        with_commas.push(digit);
    }
    with_commas + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned() {
        let mut table = Table::new("of numbers", vec!["name", "value"]);
        table.add(vec!["a".into(), 1_234_567.0.into()]);
        table.add(vec!["bc".into(), 0.25.into()]);
        assert_eq!(table.to_string(), "of numbers\n  name      value\n  a     1,234,567\n  bc         0.25");
    }
}
