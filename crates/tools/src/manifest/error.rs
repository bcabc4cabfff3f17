//! Errors in a manifest.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// A manifest that cannot be used.
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
}

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
        Self { file: file.to_owned(), line: None, column: None, tool: None, field: None, message }
    }

    /// The error for text that is not TOML, or for a field with the wrong name or type.
    pub(super) fn of_syntax(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let (line, column) = error.span().map(|span| position_of(text, span.start)).unzip();
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        let tool = error.span().and_then(|span| tool_at(text, span.start));
        Self { line, column, tool, ..Self::of_file(file, message) }
    }
}

/// The name of the tool whose table contains the offset `at`, if the text is valid TOML.
fn tool_at(text: &str, at: usize) -> Option<String> {
    let headers = text.get(..at)?.lines().filter(|line| line.trim_start().starts_with("[[tool]]")).count();
    let file: toml::Table = text.parse().ok()?;
    let tool = file.get("tool")?.get(headers.checked_sub(1)?)?;
    tool.get("name")?.as_str().map(str::to_owned)
}

/// Line and column of the byte `at`, both counted from 1; a column is a character.
pub(super) fn position_of(text: &str, at: usize) -> (u32, u32) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    (number(before.matches('\n').count()), number(before[line_start..].chars().count()))
}
