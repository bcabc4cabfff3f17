//! A location in `models.toml`, for its errors.

use std::path::Path;

use toml::Spanned;

use crate::error::ModelsError;

/// The model that is being read, and its file.
pub(super) struct Location<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    pub(super) model: String,
    /// Offset of the model's name in the text, in bytes.
    pub(super) at: usize,
}

impl Location<'_> {
    /// An error of the model as a whole, or of a missing field.
    pub(super) fn error(&self, field: &str, message: impl Into<String>) -> ModelsError {
        self.error_at(self.at, field, message)
    }

    /// An error of a field, with the position of its value.
    pub(super) fn field_error<T>(&self, value: &Spanned<T>, field: &str, message: impl Into<String>) -> ModelsError {
        self.error_at(value.span().start, field, message)
    }

    fn error_at(&self, at: usize, field: &str, message: impl Into<String>) -> ModelsError {
        ModelsError {
            model: Some(self.model.clone()),
            field: (!field.is_empty()).then(|| field.to_owned()),
            ..ModelsError::of_place(self.file, self.text, at, message.into())
        }
    }
}
