//! The settings file.

use std::{collections::BTreeMap, fs, path::Path};

use redial_files::{Position, TomlMistake, did_you_mean, position_of, syntax_mistakes};
use redial_proto::{ApiError, Code};
use toml::de::{DeTable, DeValue};

use super::{flags::names, problems::Problems};

/// The settings, each with its position.
#[derive(Clone, Debug, Default)]
pub(super) struct SettingsFile {
    name: String,
    values: BTreeMap<String, (String, Position)>,
}

impl SettingsFile {
    /// Reads a file. What is wrong in it is added to the problems, and the rest is used.
    pub(super) fn read(path: &Path, problems: &mut Problems) -> Self {
        let name = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(name, &text, problems),
            Err(error) => {
                problems.add(invalid(format!("settings file {name}: {error}")));
                Self::default()
            }
        }
    }

    fn parse(name: String, text: &str, problems: &mut Problems) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let line = |mistake: TomlMistake| {
                let at = mistake.at.map(|at| format!(":{}", position_of(text, at))).unwrap_or_default();
                format!("{name}{at}: {}", mistake.message)
            };
            problems.add_all(Code::InvalidConfiguration, syntax_mistakes(text, &errors).into_iter().map(line));
            return Self::default();
        }
        let mut values = BTreeMap::new();
        for (key, value) in table.get_ref() {
            let setting = key.get_ref().as_ref();
            if allowed().any(|known| known == setting) {
                let position = position_of(text, value.span().start);
                match value.get_ref() {
                    DeValue::String(value) => drop(values.insert(setting.to_owned(), (value.to_string(), position))),
                    // Its text may be a URL with a password.
                    DeValue::Array(_) | DeValue::Table(_) => problems.add(invalid(format!(
                        "{name}:{position}: {setting} is a list or a table; allowed: text, a number, true or false"
                    ))),
                    // As it is written, but for 10_000.
                    _ => drop(values.insert(setting.to_owned(), (text[value.span()].replace('_', ""), position))),
                }
                continue;
            }
            let close = did_you_mean(setting, allowed());
            let close = close.map(|close| format!(" did you mean {close:?}?")).unwrap_or_default();
            let position = position_of(text, key.span().start);
            let message = format!(
                "{name}:{position}: unknown setting {setting:?};{close} allowed: {}",
                allowed().collect::<Vec<_>>().join(", ")
            );
            problems.add(invalid(message));
        }
        Self { name, values }
    }

    /// Returns a setting's value as text, and where it is.
    pub(super) fn get(&self, setting: &str) -> Option<(String, String)> {
        let (value, position) = self.values.get(setting)?;
        Some((value.clone(), format!("{}:{position}", self.name)))
    }
}

fn allowed() -> impl Iterator<Item = &'static str> {
    names().filter(|name| *name != "config")
}

fn invalid(message: String) -> ApiError {
    ApiError::new(Code::InvalidConfiguration, message)
}
