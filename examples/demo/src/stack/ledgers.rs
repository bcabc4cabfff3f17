//! Ledgers of the demo's external systems: the effects that really happened, independent of Redial's record.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde::{Deserialize, de::DeserializeOwned};

/// A booking or a charge.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    /// The idempotency key of the call.
    pub(crate) key: String,
    /// The worker's name.
    pub(crate) client: String,
}

/// The folder with the ledgers.
#[derive(Debug)]
pub(crate) struct Ledgers(pub(super) PathBuf);

impl Ledgers {
    /// All requests to the airline.
    pub(crate) fn bookings(&self) -> anyhow::Result<Vec<Entry>> {
        lines(&self.0.join("airline.jsonl"))
    }

    /// All charges of the card.
    pub(crate) fn charges(&self) -> anyhow::Result<Vec<Entry>> {
        lines(&self.0.join("bank.jsonl"))
    }
}

/// Reads a file with one JSON value per line. A missing file counts as empty; an incomplete last line is skipped,
/// because it is still being written.
fn lines<T: DeserializeOwned>(file: &Path) -> anyhow::Result<Vec<T>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.with_context(|| file.display().to_string())?,
    };
    let complete = text.rsplit_once('\n').map_or("", |(complete, _rest)| complete);
    let lines = complete.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    lines.with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_line_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let ledgers = Ledgers(folder.path().to_owned());
        assert!(ledgers.bookings().unwrap().is_empty());
        let text = "{\"key\": \"a\", \"client\": \"w\"}\n{\"key\": \"b\", \"client\": \"w\"}\n{\"key\"";
        fs::write(folder.path().join("airline.jsonl"), text).unwrap();
        let keys: Vec<String> = ledgers.bookings().unwrap().into_iter().map(|booking| booking.key).collect();
        assert_eq!(keys, ["a", "b"]);
    }
}
