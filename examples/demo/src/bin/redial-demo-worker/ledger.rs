//! Where the demo's outside world keeps its books: files with a line for every event, so that anyone can count
//! afterwards what really happened.

use std::{fs::OpenOptions, io::Write, path::PathBuf, sync::Arc};

use serde_json::Value;

/// A file to append to. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(Arc<PathBuf>);

impl Ledger {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self(Arc::new(file))
    }

    /// Writes one line, for good.
    pub(crate) async fn note(&self, event: Value) -> std::io::Result<()> {
        let (file, line) = (Arc::clone(&self.0), format!("{event}\n"));
        tokio::task::spawn_blocking(move || {
            // One write to the end of the file: the lines of several workers do not mix.
            OpenOptions::new().create(true).append(true).open(&*file)?.write_all(line.as_bytes())
        })
        .await?
    }
}
