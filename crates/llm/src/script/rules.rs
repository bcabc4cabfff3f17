//! Reads the rules of a script. All mistakes are found at once.

use std::path::Path;

use redial_files::{Entries, FileError, LIMIT, Rules, entries_beside, field_at, read_entry, toml_mistake};
use serde::Deserialize;
use toml::{Spanned, de::DeTable};

use super::{
    build::build,
    file::{Entry, Style},
    rule::Rule,
};

/// A rule needs exactly one answer, so a value stands in for a wrong one.
const RULES: Rules<'static> = Rules {
    needed: &[],
    stand_ins: &[
        ("text", "\"\""),
        ("calls", "[]"),
        ("body", "\"\""),
        ("api", "\"react\""),
        ("error", "{ status = 500 }"),
        ("error.class", "\"internal\""),
        ("error.status", "500"),
    ],
};

/// Reads the rules in the text of a script.
pub(super) fn read(path: &Path, text: &str) -> Result<Vec<Rule>, Vec<FileError>> {
    let Entries { tables, mistakes, others } = entries_beside(text, "rule", &["style"]);
    let of_mistake = |mistake| FileError::of_mistake(path, text, mistake, None);
    let mut errors: Vec<FileError> = mistakes.into_iter().map(of_mistake).collect();
    let style = others.into_iter().next().and_then(|(_, value)| {
        let read = Style::deserialize(toml::de::ValueDeserializer::from(value));
        read.map_err(|error| errors.push(of_mistake(toml_mistake(&error)))).ok()
    });
    let react = style == Some(Style::React);
    let mut rules = Vec::with_capacity(tables.len());
    for (index, (_, table)) in tables.into_iter().enumerate() {
        let at = |error: &FileError| error.place.wrong_part();
        match read_entry(table, &RULES, at, |table| rule(index, table, react, path, text)) {
            Ok(rule) => rules.push(rule),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() {
        return Ok(rules);
    }
    errors.sort_by_key(|error| error.place);
    errors.truncate(LIMIT);
    Err(errors)
}

fn rule(index: usize, table: Spanned<DeTable<'_>>, react: bool, path: &Path, text: &str) -> Result<Rule, FileError> {
    let (fields, begin) = (table.get_ref().clone(), table.span().start);
    let entry = Entry::deserialize(toml::de::Deserializer::from(table))
        .map_err(|error| FileError::of_mistake(path, text, toml_mistake(&error), None))?;
    let name = match &entry.name {
        Some(name) => format!("rule {name:?}"),
        None => format!("rule {}", index + 1),
    };
    build(entry, name.clone(), react).map_err(|(field, message)| {
        let at = field_at(&fields, field);
        let error = FileError::of_place(path, text, at.unwrap_or(begin), message);
        let place = if at.is_some() { error.place } else { error.place.of_whole() };
        let field = (!field.is_empty()).then(|| field.to_owned());
        FileError { entry: Some(name), field, place, ..error }
    })
}
