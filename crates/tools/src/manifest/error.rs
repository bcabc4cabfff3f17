//! Errors in a manifest.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use redial_files::{Place, TomlMistake, position_of};

/// A mistake in a manifest, which cannot be used because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The manifest.
    pub file: PathBuf,
    /// Counted from 1.
    pub line: Option<u32>,
    /// The character of the line, counted from 1.
    pub column: Option<u32>,
    /// The tool's name.
    pub tool: Option<String>,
    /// The field with its table, such as `http.url`.
    pub field: Option<String>,
    /// What is wrong, and what is allowed.
    pub message: String,
    /// What of the file is wrong.
    pub(super) place: Place,
}

/// Everything that is wrong in a manifest, in the order of the file; at least one error, and at most
/// [`redial_files::LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestErrors(pub Vec<ManifestError>);

impl fmt::Display for ManifestErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ManifestErrors {}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        if let Some(tool) = &self.tool {
            write!(f, ": tool {tool:?}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ManifestError {}

impl ManifestError {
    pub(super) fn of_file(file: &Path, message: String) -> Self {
        Self { file: file.to_owned(), line: None, column: None, tool: None, field: None, message, place: Place::File }
    }

    /// An error at a byte of the file.
    pub(super) fn at(file: &Path, text: &str, at: usize, message: String) -> Self {
        let position = position_of(text, at);
        let (line, column) = (Some(position.line), Some(position.column));
        Self { line, column, place: Place::part(at), ..Self::of_file(file, message) }
    }

    /// The error for text that is not TOML, or for a field with the wrong name or type.
    pub(super) fn of_mistake(file: &Path, text: &str, mistake: TomlMistake, tool: Option<String>) -> Self {
        let TomlMistake { at, message } = mistake;
        let error = match at {
            Some(at) => Self::at(file, text, at, message),
            None => Self::of_file(file, message),
        };
        Self { tool, ..error }
    }
}
