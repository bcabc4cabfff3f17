//! All mistakes of a TOML file, not only the first.

use toml::{
    Spanned,
    de::{DeTable, DeValue, Error},
};

use crate::words;

/// Most mistakes of one file that are told; who has more is better served by the first ones.
pub const LIMIT: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomlMistake {
    /// The byte of the text where it is; `None` if it is about the whole.
    pub at: Option<usize>,
    /// What was found, and what is allowed.
    pub message: String,
}

/// Returns the mistake that a reader reports, in plain words.
pub fn toml_mistake(error: &Error) -> TomlMistake {
    let message = error.message().lines().next().unwrap_or_default();
    let field = error.message().lines().nth(1).and_then(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    let mut message = words::data_message(message).unwrap_or_else(|| message.replace('`', "\""));
    if let Some(field) = field {
        message = format!("{field}: {message}");
    }
    TomlMistake { at: error.span().map(|span| span.start), message }
}

/// Returns what keeps a text from being TOML: one mistake for each line, because what follows one is most often its
/// consequence.
pub fn syntax_mistakes(text: &str, errors: &[Error]) -> Vec<TomlMistake> {
    let mut found: Vec<(Option<usize>, &Error)> =
        errors.iter().map(|error| (error.span().map(|span| span.start), error)).collect();
    found.sort_by_key(|(at, _)| *at);
    let mut last = None;
    found.retain(|(at, _)| match (last.replace(*at), at) {
        (Some(Some(before)), Some(at)) => text.as_bytes()[before..*at].contains(&b'\n'),
        (before, at) => before != Some(*at),
    });
    found.truncate(LIMIT);
    found.into_iter().map(|(_, error)| toml_mistake(error)).collect()
}

/// The tables of a file: of `[name.a]` and `[name.b]`, or of `[[name]]`.
#[derive(Debug)]
pub struct Entries<'t> {
    /// Each with its name, if it has one.
    pub tables: Vec<(Option<Spanned<String>>, Spanned<DeTable<'t>>)>,
    /// The values of other entries that are allowed.
    pub others: Vec<(&'static str, Spanned<DeValue<'t>>)>,
    /// What is wrong outside of them.
    pub mistakes: Vec<TomlMistake>,
}

/// Parses a file whose only entry is `name`: a table of tables, or an array of tables.
pub fn entries<'t>(text: &'t str, name: &str) -> Entries<'t> {
    entries_beside(text, name, &[])
}

/// Parses a file that may have other entries, too.
pub fn entries_beside<'t>(text: &'t str, name: &str, others: &[&'static str]) -> Entries<'t> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut found = Entries { tables: Vec::new(), others: Vec::new(), mistakes: syntax_mistakes(text, &errors) };
    if !found.mistakes.is_empty() {
        // What could be read of a text that is not TOML is a guess.
        return found;
    }
    for (key, value) in table.into_inner() {
        if key.get_ref() == name {
            found.take(name, value);
        } else if let Some(other) = others.iter().find(|other| key.get_ref() == **other) {
            found.others.push((other, value));
        } else {
            let allowed: Vec<&str> = others.iter().copied().chain([name]).collect();
            let close = words::did_you_mean(key.get_ref(), allowed.iter().copied());
            let question = close.map(|close| format!("did you mean {close:?}? ")).unwrap_or_default();
            let message = format!("unknown table {:?}; {question}allowed: {}", key.get_ref(), allowed.join(", "));
            found.mistake(key.span().start, message);
        }
    }
    found
}

impl<'t> Entries<'t> {
    fn take(&mut self, name: &str, value: Spanned<DeValue<'t>>) {
        let at = value.span().start;
        match value.into_inner() {
            DeValue::Table(tables) => {
                for (key, value) in tables {
                    let key = Spanned::new(key.span(), key.into_inner().into_owned());
                    self.push(name, Some(key), value);
                }
            }
            DeValue::Array(tables) => tables.into_iter().for_each(|value| self.push(name, None, value)),
            other => self.mistake(at, format!("{name} is a {}; a table is needed", other.type_str())),
        }
    }

    fn push(&mut self, name: &str, key: Option<Spanned<String>>, value: Spanned<DeValue<'t>>) {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => self.tables.push((key, Spanned::new(span, table))),
            other => {
                let (what, at) = match &key {
                    Some(key) => (format!("{name}.{}", key.get_ref()), key.span().start),
                    None => (name.to_owned(), span.start),
                };
                self.mistake(at, format!("{what} is a {}; a table is needed", other.type_str()));
            }
        }
    }

    fn mistake(&mut self, at: usize, message: String) {
        if self.mistakes.len() < LIMIT {
            self.mistakes.push(TomlMistake { at: Some(at), message });
        }
    }
}

/// Returns where a field of a table is, by its path such as `budgets.turns`; of the longest part of the path that is
/// there.
pub fn field_at(table: &DeTable<'_>, path: &str) -> Option<usize> {
    let (first, rest) = path.split_once('.').map_or((path, ""), |(first, rest)| (first, rest));
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first)?;
    let inner = value.get_ref().as_table().filter(|_| !rest.is_empty()).and_then(|inner| field_at(inner, rest));
    let of_value = if value.get_ref().is_table() { key.span().start } else { value.span().start };
    Some(inner.unwrap_or(of_value))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::{Rules, position_of, read_entry};

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tool {}

    #[test]
    fn the_number_of_mistakes_is_bounded() {
        let tables: Vec<String> = (0..1000).map(|n| format!("[wrong{n}]\n")).collect();
        assert_eq!(entries(&tables.concat(), "tool").mistakes.len(), LIMIT);
        let fields: Vec<String> = (0..1000).map(|n| format!("wrong{n} = 1\n")).collect();
        let text = format!("[[tool]]\n{}", fields.concat());
        let (_, table) = entries(&text, "tool").tables.remove(0);
        let tool = |table| Tool::deserialize(toml::de::Deserializer::from(table)).map_err(|error| toml_mistake(&error));
        let mistakes = read_entry(table, &Rules::default(), |error: &TomlMistake| error.at, tool).unwrap_err();
        assert_eq!(mistakes.len(), LIMIT);
    }

    #[test]
    fn fields_are_found_by_their_paths() {
        let text = "model = 3\n[budgets]\nturns = 5\n";
        let table = DeTable::parse(text).unwrap();
        let at = |path| field_at(table.get_ref(), path).map(|at| position_of(text, at).to_string());
        assert_eq!(at("model").as_deref(), Some("1:9"));
        assert_eq!(at("budgets.turns").as_deref(), Some("3:9"));
        assert_eq!(at("budgets.none").as_deref(), Some("2:2"));
        assert_eq!(at("none"), None);
    }
}
