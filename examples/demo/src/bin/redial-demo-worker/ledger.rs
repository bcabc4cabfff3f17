//! What an external system keeps on record: a file with one line for each request, so that anyone can count the effects
//! that really happened.

use std::{fs::OpenOptions, io::Write, path::PathBuf, sync::Arc};

use serde_json::{Value, json};

/// A file that one worker appends to. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    file: Arc<PathBuf>,
    client: Arc<str>,
}

impl Ledger {
    /// `client` is the name of the worker.
    pub(crate) fn new(file: PathBuf, client: &str) -> Self {
        Self { file: Arc::new(file), client: client.into() }
    }

    /// Appends a request with its idempotency key.
    pub(crate) async fn append(&self, key: &str, request: Value) -> std::io::Result<()> {
        let (file, entry) = (Arc::clone(&self.file), json!({"key": key, "client": &*self.client, "request": request}));
        tokio::task::spawn_blocking(move || {
            // A single write, so that the lines of several workers do not mix.
            OpenOptions::new().create(true).append(true).open(&*file)?.write_all(format!("{entry}\n").as_bytes())
        })
        .await?
    }
}
