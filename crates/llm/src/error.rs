//! Errors in `models.toml` and in scripts.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelsError {
    /// The file: `models.toml`, or a script that it names.
    pub file: PathBuf,
    /// Counted from 1.
    pub line: Option<usize>,
    /// The model's name.
    pub model: Option<String>,
    /// The field with its table, such as `headers.X-Team`.
    pub field: Option<String>,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for ModelsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
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
        Self { file: file.to_owned(), line: None, model: None, field: None, message }
    }

    /// The error for text that is not TOML, or for a field with the wrong name or type.
    pub(crate) fn of_syntax(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_of(text, span.start));
        let model = error.span().and_then(|span| model_at(text, span.start));
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        Self { line, model, ..Self::of_file(file, message) }
    }
}

/// The model whose table contains the offset `at`: the last table header before it names the model.
fn model_at(text: &str, at: usize) -> Option<String> {
    let line_end = text.get(at..)?.find('\n').map_or(text.len(), |length| at + length);
    let mut headers = text.get(..line_end)?.lines().rev().filter_map(|line| line.trim().strip_prefix("[models."));
    let header = headers.next()?.split(']').next()?;
    let name = match header.strip_prefix(['"', '\'']) {
        Some(quoted) => quoted.split(['"', '\'']).next()?,
        None => header.split('.').next()?,
    };
    Some(name.trim().to_owned())
}

/// The line of an offset, counted from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}
