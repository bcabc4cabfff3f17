//! What is wrong with a manifest, and where.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use toml::Spanned;

/// A manifest that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The manifest.
    pub file: PathBuf,
    /// From 1.
    pub line: Option<usize>,
    /// The tool's name.
    pub tool: Option<String>,
    /// The field, with the table that it stands in: `http.url`.
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
        Self { file: file.to_owned(), line: None, tool: None, field: None, message }
    }

    /// Text that is no TOML, or fields of the wrong name or type.
    pub(super) fn of_syntax(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_of(text, span.start));
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        let tool = error.span().and_then(|span| tool_at(text, span.start));
        Self { line, tool, ..Self::of_file(file, message) }
    }
}

/// Which tool of which file is being read.
pub(super) struct Place<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    pub(super) tool: String,
    /// Where the tool's name stands, in bytes.
    pub(super) at: usize,
}

impl Place<'_> {
    /// An error of the tool, or of a field that stands nowhere in particular.
    pub(super) fn error(&self, field: &str, message: impl Into<String>) -> ManifestError {
        self.error_at(self.at, field, message)
    }

    /// An error of a field.
    pub(super) fn wrong<T>(&self, value: &Spanned<T>, field: &str, message: impl Into<String>) -> ManifestError {
        self.error_at(value.span().start, field, message)
    }

    fn error_at(&self, at: usize, field: &str, message: impl Into<String>) -> ManifestError {
        ManifestError {
            file: self.file.to_owned(),
            line: Some(line_of(self.text, at)),
            tool: Some(self.tool.clone()),
            field: (!field.is_empty()).then(|| field.to_owned()),
            message: message.into(),
        }
    }
}

/// The name of the tool whose table stands around a place, if the text is TOML at all.
fn tool_at(text: &str, at: usize) -> Option<String> {
    let headers = text.get(..at)?.lines().filter(|line| line.trim_start().starts_with("[[tool]]")).count();
    let file: toml::Table = text.parse().ok()?;
    let tool = file.get("tool")?.get(headers.checked_sub(1)?)?;
    tool.get("name")?.as_str().map(str::to_owned)
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}
