//! Errors in `models.toml` and in scripts.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use redial_files::{Place, TomlMistake, position_of};

/// A mistake in a file, which cannot be used because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelsError {
    /// The file: `models.toml`, or a script that it names.
    pub file: PathBuf,
    /// Counted from 1.
    pub line: Option<u32>,
    /// The character of the line, counted from 1.
    pub column: Option<u32>,
    /// The model's name.
    pub model: Option<String>,
    /// The field with its table, such as `headers.X-Team`.
    pub field: Option<String>,
    /// What is wrong, and what is allowed.
    pub message: String,
    /// What of the file is wrong.
    pub(crate) place: Place,
}

/// Everything that is wrong in a file of models and its scripts, in the order of the file; at least one error, and at
/// most [`redial_files::LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelsErrors(pub Vec<ModelsError>);

impl fmt::Display for ModelsErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ModelsErrors {}

impl fmt::Display for ModelsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        if let Some(model) = &self.model {
            write!(f, ": model {model:?}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ModelsError {}

impl ModelsError {
    pub(crate) fn of_file(file: &Path, message: String) -> Self {
        Self { file: file.to_owned(), line: None, column: None, model: None, field: None, message, place: Place::File }
    }

    /// An error at a byte of the file.
    pub(crate) fn of_place(file: &Path, text: &str, at: usize, message: String) -> Self {
        let position = position_of(text, at);
        let (line, column) = (Some(position.line), Some(position.column));
        Self { line, column, place: Place::part(at), ..Self::of_file(file, message) }
    }

    /// The error for text that is not TOML, or for a field with the wrong name or type.
    pub(crate) fn of_mistake(file: &Path, text: &str, mistake: TomlMistake, model: Option<String>) -> Self {
        let TomlMistake { at, message } = mistake;
        let error = match at {
            Some(at) => Self::of_place(file, text, at, message),
            None => Self::of_file(file, message),
        };
        Self { model, ..error }
    }
}
