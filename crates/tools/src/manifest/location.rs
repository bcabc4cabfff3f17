//! A location in a manifest, for its errors.

use std::path::Path;

use redial_files::{Position, position_of};
use toml::Spanned;

use super::error::{ManifestError, byte};

/// The tool that is being read, and its file.
pub(super) struct Location<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    pub(super) tool: String,
    /// Offset of the tool's name in the text, in bytes.
    pub(super) at: usize,
}

impl Location<'_> {
    /// An error of the tool as a whole, or of a missing field.
    pub(super) fn error(&self, field: &str, message: impl Into<String>) -> ManifestError {
        self.error_at(self.at, field, message)
    }

    /// An error of a field, with the position of its value.
    pub(super) fn field_error<T>(&self, value: &Spanned<T>, field: &str, message: impl Into<String>) -> ManifestError {
        self.error_at(value.span().start, field, message)
    }

    fn error_at(&self, at: usize, field: &str, message: impl Into<String>) -> ManifestError {
        let Position { line, column } = position_of(self.text, at);
        ManifestError {
            file: self.file.to_owned(),
            line: Some(line),
            column: Some(column),
            tool: Some(self.tool.clone()),
            field: (!field.is_empty()).then(|| field.to_owned()),
            message: message.into(),
            at: Some(byte(at)),
        }
    }
}
