//! Errors in files that people write.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use toml::{Spanned, de::DeTable};

use crate::{Place, TomlMistake, field_at, position_of};

/// A mistake in a file, which cannot be used because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    pub file: PathBuf,
    /// Counted from 1.
    pub line: Option<u32>,
    /// The character of the line, counted from 1.
    pub column: Option<u32>,
    /// What of the file it is in, such as `tool "book"`.
    pub entry: Option<String>,
    /// The field with its table, such as `http.url`.
    pub field: Option<String>,
    /// What is wrong, and what is allowed.
    pub message: String,
    /// What of the file is wrong.
    pub place: Place,
}

/// Everything that is wrong in a file, in the order of the file; at least one error, and at most [`crate::LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors(pub Vec<FileError>);

impl fmt::Display for FileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for FileErrors {}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        for part in [&self.entry, &self.field].into_iter().flatten() {
            write!(f, ": {part}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for FileError {}

impl FileError {
    pub fn of_file(file: &Path, message: String) -> Self {
        Self { file: file.to_owned(), line: None, column: None, entry: None, field: None, message, place: Place::File }
    }

    /// Makes an error at a byte of the file.
    pub fn of_place(file: &Path, text: &str, at: usize, message: String) -> Self {
        let position = position_of(text, at);
        let (line, column) = (Some(position.line), Some(position.column));
        Self { line, column, place: Place::part(at), ..Self::of_file(file, message) }
    }

    /// Makes the error for text that is not TOML, or for a field with the wrong name or type.
    pub fn of_mistake(file: &Path, text: &str, mistake: TomlMistake, entry: Option<String>) -> Self {
        let TomlMistake { at, message } = mistake;
        let error = match at {
            Some(at) => Self::of_place(file, text, at, message),
            None => Self::of_file(file, message),
        };
        Self { entry, ..error }
    }
}

/// The entry of a file that is being read, for its errors.
#[derive(Clone, Copy)]
pub struct Location<'a> {
    pub file: &'a Path,
    pub text: &'a str,
    /// What an entry is, such as `tool`.
    pub kind: &'static str,
    pub name: Option<&'a str>,
    /// Offset of the entry's name in the text, in bytes; of its table without one.
    pub at: usize,
    pub fields: &'a DeTable<'a>,
}

impl Location<'_> {
    /// Makes an error of a field, with the position of its value; of the entry as a whole if the field is not there.
    pub fn error(&self, field: &str, message: impl Into<String>) -> FileError {
        match field_at(self.fields, field) {
            Some(at) => self.error_at(at, field, message),
            None => self.whole_error(field, message),
        }
    }

    /// Makes an error whose message begins with the path of its field.
    pub fn path_error(&self, message: String) -> FileError {
        let path = message.split([' ', ':']).next().unwrap_or_default();
        match field_at(self.fields, path) {
            Some(at) => self.error_at(at, "", message),
            None => self.whole_error("", message),
        }
    }

    /// Makes an error of the entry as a whole.
    pub fn whole_error(&self, field: &str, message: impl Into<String>) -> FileError {
        let error = self.name_error(field, message);
        FileError { place: error.place.of_whole(), ..error }
    }

    /// Makes an error of the entry's name.
    pub fn name_error(&self, field: &str, message: impl Into<String>) -> FileError {
        self.error_at(self.at, field, message)
    }

    /// Makes an error of a field, with the position of its value.
    pub fn field_error<T>(&self, value: &Spanned<T>, field: &str, message: impl Into<String>) -> FileError {
        self.error_at(value.span().start, field, message)
    }

    /// Returns what errors call the entry; `None` if it has no name.
    pub fn entry(&self) -> Option<String> {
        self.name.map(|name| format!("{} {name:?}", self.kind))
    }

    fn error_at(&self, at: usize, field: &str, message: impl Into<String>) -> FileError {
        FileError {
            entry: self.entry(),
            field: (!field.is_empty()).then(|| field.to_owned()),
            ..FileError::of_place(self.file, self.text, at, message.into())
        }
    }
}
