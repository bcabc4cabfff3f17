//! A location in a manifest, for its errors.

use std::path::Path;

use redial_files::field_at;
use toml::{Spanned, de::DeTable};

use super::{Name, error::ManifestError};

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
        ManifestError { whole: true, ..self.error_at(self.name.at, field, message) }
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
