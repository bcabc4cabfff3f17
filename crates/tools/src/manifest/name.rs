//! What a tool of a manifest is called.

use std::path::Path;

use redial_files::FileError;
use toml::{Spanned, de::DeTable};

/// What an entry of a manifest is, in its errors.
pub(super) const KIND: &str = "tool";

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

    /// Makes an error of the tool at its name.
    pub(super) fn error(&self, file: &Path, text: &str, message: String) -> FileError {
        let entry = self.text.as_ref().map(|name| format!("{KIND} {name:?}"));
        FileError { entry, ..FileError::of_place(file, text, self.at, message) }
    }
}
