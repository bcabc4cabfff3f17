//! The books of the demo's outside world: what really happened, whatever Redial says of it.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde::{Deserialize, de::DeserializeOwned};

/// A request that reached the airline.
#[derive(Debug, Deserialize)]
pub(crate) struct Booking {
    /// The idempotency key: one for each call.
    pub(crate) key: String,
    /// The worker's name.
    pub(crate) client: String,
}

/// Something that happened at the warehouse.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Entry {
    /// `asked` or `done`.
    pub(crate) event: String,
    /// The idempotency key: one for each call.
    pub(crate) key: String,
    /// The worker's name.
    pub(crate) client: String,
    pub(crate) what: What,
}

/// What the warehouse was asked for.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct What {
    pub(crate) tool: String,
}

/// The folder that the workers' outside world writes to.
#[derive(Debug)]
pub(crate) struct Books(pub(super) PathBuf);

impl Books {
    /// Every request that reached the airline.
    pub(crate) fn bookings(&self) -> anyhow::Result<Vec<Booking>> {
        lines(&self.0.join("airline.jsonl"))
    }

    /// Everything that happened at the warehouse.
    pub(crate) fn warehouse(&self) -> anyhow::Result<Vec<Entry>> {
        lines(&self.0.join("warehouse.jsonl"))
    }

    /// Orders wait from now on.
    pub(crate) fn close_warehouse(&self) -> anyhow::Result<()> {
        Ok(fs::write(self.door(), "")?)
    }

    /// Orders are delivered again, if they were not.
    pub(crate) fn open_warehouse(&self) -> anyhow::Result<()> {
        match fs::remove_file(self.door()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn door(&self) -> PathBuf {
        self.0.join("warehouse.closed")
    }
}

/// A file with a JSON value in each line; none yet is as good as empty. A last line that is still being written is left
/// out.
fn lines<T: DeserializeOwned>(file: &Path) -> anyhow::Result<Vec<T>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.with_context(|| file.display().to_string())?,
    };
    let whole = text.rsplit_once('\n').map_or("", |(whole, _rest)| whole);
    let lines = whole.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    lines.with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_are_read_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let books = Books(folder.path().to_owned());
        assert!(books.bookings().unwrap().is_empty());
        let text = "{\"key\": \"a\", \"client\": \"w\"}\n{\"key\": \"b\", \"client\": \"w\"}\n{\"key\"";
        fs::write(folder.path().join("airline.jsonl"), text).unwrap();
        let keys: Vec<String> = books.bookings().unwrap().into_iter().map(|booking| booking.key).collect();
        assert_eq!(keys, ["a", "b"]);
    }
}
