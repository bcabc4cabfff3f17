//! What is wrong with a file of models, and where.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use toml::Spanned;

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelsError {
    /// The file: `models.toml`, or a script that it names.
    pub file: PathBuf,
    /// From 1.
    pub line: Option<usize>,
    /// The model's name.
    pub model: Option<String>,
    /// The field, with the table that it stands in: `headers.X-Team`.
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

    /// Text that is no TOML, or fields of the wrong name or type.
    pub(crate) fn of_syntax(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_of(text, span.start));
        let model = error.span().and_then(|span| model_at(text, span.start));
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        Self { line, model, ..Self::of_file(file, message) }
    }
}

/// Which model of which file is being read.
pub(super) struct Place<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    pub(super) model: String,
    /// Where the model's name stands, in bytes.
    pub(super) at: usize,
}

impl Place<'_> {
    /// An error of the model, or of a field that stands nowhere in particular.
    pub(super) fn error(&self, field: &str, message: impl Into<String>) -> ModelsError {
        self.error_at(self.at, field, message)
    }

    /// An error of a field.
    pub(super) fn wrong<T>(&self, value: &Spanned<T>, field: &str, message: impl Into<String>) -> ModelsError {
        self.error_at(value.span().start, field, message)
    }

    fn error_at(&self, at: usize, field: &str, message: impl Into<String>) -> ModelsError {
        ModelsError {
            file: self.file.to_owned(),
            line: Some(line_of(self.text, at)),
            model: Some(self.model.clone()),
            field: (!field.is_empty()).then(|| field.to_owned()),
            message: message.into(),
        }
    }
}

/// The model whose table stands around a place: the last header before it names it.
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

pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}
