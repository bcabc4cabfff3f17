//! A location in a manifest, for its errors.

use std::path::Path;

use redial_files::field_at;
use toml::{Spanned, de::DeTable};

use super::error::ManifestError;

/// What a tool is called, and where.
#[derive(Clone)]
pub(super) struct Name {
    /// `None` if it has no name, or one that is no text.
    pub(super) text: Option<String>,
    /// Offset of the name in the manifest, in bytes; of the tool's table without one.
    pub(super) at: usize,
}

impl Name {
    pub(super) fn of(table: &Spanned<DeTable<'_>>) -> Self {
        let value = table.get_ref().get("name");
        let text = value.and_then(|value| value.get_ref().as_str()).map(str::to_owned);
        Self { text, at: value.map_or(table.span().start, |value| value.span().start) }
    }

    /// An error of the tool at its name.
    pub(super) fn error(&self, file: &Path, text: &str, message: String) -> ManifestError {
        ManifestError { tool: self.text.clone(), ..ManifestError::at(file, text, self.at, message) }
    }
}

/// The tool that is being read, and its file.
pub(super) struct Location<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    pub(super) name: &'a Name,
    /// The tool's table.
    pub(super) fields: &'a DeTable<'a>,
}

impl Location<'_> {
    /// An error of the tool as a whole.
    pub(super) fn error(&self, field: &str, message: impl Into<String>) -> ManifestError {
        let error = self.error_at(self.name.at, field, message);
        ManifestError { place: error.place.of_whole(), ..error }
    }

    /// An error of the tool's name.
    pub(super) fn name_error(&self, message: impl Into<String>) -> ManifestError {
        self.error_at(self.name.at, "", message)
    }

    /// An error of a field, with the position of its value.
    pub(super) fn field_error<T>(&self, value: &Spanned<T>, field: &str, message: impl Into<String>) -> ManifestError {
        self.error_at(value.span().start, field, message)
    }

    /// An error whose message begins with the path of its field.
    pub(super) fn path_error(&self, message: String) -> ManifestError {
        let path = message.split([' ', ':']).next().unwrap_or_default();
        match field_at(self.fields, path) {
            Some(at) => self.error_at(at, "", message),
            None => self.error("", message),
        }
    }

    fn error_at(&self, at: usize, field: &str, message: impl Into<String>) -> ManifestError {
        ManifestError {
            tool: self.name.text.clone(),
            field: (!field.is_empty()).then(|| field.to_owned()),
            ..ManifestError::at(self.file, self.text, at, message.into())
        }
    }
}
