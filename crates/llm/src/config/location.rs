//! A location in `models.toml`, for its errors.

use std::path::Path;

use redial_files::field_at;
use toml::{Spanned, de::DeTable};

use crate::error::ModelsError;

/// The model that is being read, and its file.
pub(super) struct Location<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    pub(super) model: String,
    /// Offset of the model's name in the text, in bytes.
    pub(super) at: usize,
    /// The model's table.
    pub(super) fields: &'a DeTable<'a>,
}

impl Location<'_> {
    /// An error of a field, with the position of its value; of the model as a whole if the field is not there.
    pub(super) fn error(&self, field: &str, message: impl Into<String>) -> ModelsError {
        match field_at(self.fields, field) {
            Some(at) => self.error_at(at, field, message),
            None => self.whole_error(field, message),
        }
    }

    /// An error whose message begins with the path of its field.
    pub(super) fn path_error(&self, message: String) -> ModelsError {
        let path = message.split([' ', ':']).next().unwrap_or_default();
        match field_at(self.fields, path) {
            Some(at) => self.error_at(at, "", message),
            None => self.whole_error("", message),
        }
    }

    fn whole_error(&self, field: &str, message: impl Into<String>) -> ModelsError {
        let error = self.error_at(self.at, field, message);
        ModelsError { place: error.place.of_whole(), ..error }
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
