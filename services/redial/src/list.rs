//! Lists as tables. A column says once what stands in it, for the narrow table and for the wide one.

use chrono::{DateTime, Utc};
use redial_store::Store;
use serde::Serialize;

use crate::{
    ids::Short,
    output,
    settings::Settings,
    table::{Cell, Column, Paper, Table},
};

pub(crate) struct Form {
    pub(crate) wide: bool,
    pub(crate) now: DateTime<Utc>,
    pub(crate) ids: Short,
}

impl Form {
    /// Shows whole ids.
    pub(crate) fn new(wide: bool, now: DateTime<Utc>) -> Self {
        Self { wide, now, ids: Short::whole() }
    }

    /// Writes a point in time in a wide table, else how long ago that was.
    pub(crate) fn time(&self, at: DateTime<Utc>) -> String {
        if self.wide { output::time(at) } else { output::ago(at, self.now) }
    }
}

pub(crate) struct Field<T> {
    column: Column,
    is_narrow: bool,
    is_wide: bool,
    cell: fn(&T, &Form) -> Cell,
}

impl<T> Field<T> {
    pub(crate) const fn whole(head: &'static str, cell: fn(&T, &Form) -> Cell) -> Self {
        Self { column: Column::whole(head), is_narrow: true, is_wide: true, cell }
    }

    /// Makes a column that may be shortened to `least` in the narrow table.
    pub(crate) const fn shortened(head: &'static str, least: u16, cell: fn(&T, &Form) -> Cell) -> Self {
        Self { column: Column::shortened(head, least), ..Self::whole(head, cell) }
    }

    pub(crate) const fn wide(head: &'static str, cell: fn(&T, &Form) -> Cell) -> Self {
        Self { is_narrow: false, ..Self::whole(head, cell) }
    }

    /// Makes a column of the narrow table only, where it may be shortened to `least`.
    pub(crate) const fn narrow(head: &'static str, least: u16, cell: fn(&T, &Form) -> Cell) -> Self {
        Self { is_wide: false, ..Self::shortened(head, least, cell) }
    }
}

/// A list that is printed in one or several parts.
pub(crate) struct List<T: 'static> {
    fields: Vec<&'static Field<T>>,
    pub(crate) form: Form,
    table: Table,
}

impl<T> List<T> {
    pub(crate) fn new(fields: &'static [Field<T>], form: Form, paper: Paper) -> Self {
        let is_shown = |field: &&Field<T>| if form.wide { field.is_wide } else { field.is_narrow };
        let fields: Vec<_> = fields.iter().filter(is_shown).collect();
        let columns: Vec<Column> = fields.iter().map(|field| field.column).collect();
        Self { fields, form, table: Table::new(paper, &columns) }
    }

    pub(crate) fn of_stdout(fields: &'static [Field<T>], form: Form) -> Self {
        let paper = Paper::of_stdout(form.wide);
        Self::new(fields, form, paper)
    }

    /// Returns the next entries as lines, without a newline at the end.
    pub(crate) fn part(&mut self, entries: &[T]) -> String {
        let row = |entry| self.fields.iter().map(|field| (field.cell)(entry, &self.form)).collect();
        let rows: Vec<Vec<Cell>> = entries.iter().map(row).collect();
        self.table.part(&rows)
    }
}

/// Renders a list in its two forms: with 80 columns, and wide.
#[cfg(test)]
pub(crate) fn both<T>(fields: &'static [Field<T>], now: DateTime<Utc>, entries: &[T]) -> String {
    let shown = |wide, width| List::new(fields, Form::new(wide, now), Paper::test(width)).part(entries);
    format!("{}\n\n{}", shown(false, Some(80)), shown(true, None))
}

/// Prints entries as lines of JSON, or as a table.
pub(crate) async fn print<T: Serialize>(
    settings: &Settings,
    store: &Store,
    fields: &'static [Field<T>],
    entries: &[T],
    wide: bool,
) -> anyhow::Result<()> {
    if settings.json() {
        return entries.iter().try_for_each(output::json);
    }
    let mut list = List::of_stdout(fields, Form::new(wide, store.now().await?));
    Ok(output::line(list.part(entries))?)
}

/// Returns the first `limit` entries, and whether there are more.
pub(crate) fn first<T>(mut found: Vec<T>, limit: u32) -> (Vec<T>, bool) {
    let limit = limit as usize;
    let more = found.len() > limit;
    found.truncate(limit);
    (found, more)
}
