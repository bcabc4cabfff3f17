//! The model's server: a Python program, which runs only where its packages are installed.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use redial_testkit::Process;

use super::wire::Exchange;

/// The Python with the packages; without it the test is skipped with a note.
const PYTHON: &str = "REDIAL_SMALL_MODEL";

/// The Python that can serve the model; `None`, with a note, if this test is not wanted.
pub(crate) fn python() -> Option<PathBuf> {
    let python = std::env::var_os(PYTHON).map(PathBuf::from);
    if python.is_none() {
        // Bypasses the capture of the test's output.
        let note =
            "NOT RUN: the tasks of a real small model, because they take minutes and a download: ./dev small-model\n";
        std::io::stderr().write_all(note.as_bytes()).unwrap();
    }
    python
}

/// A running model.
pub(crate) struct Server {
    /// Dropping it ends the model.
    _process: Process,
    pub(crate) url: String,
    exchanges: PathBuf,
}

impl Server {
    /// Starts it; the file `exchanges.jsonl` in the folder gets what is said.
    pub(crate) async fn start(python: &Path, said: &Path) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/processes/small_model");
        let exchanges = said.join("exchanges.jsonl");
        std::fs::write(&exchanges, "").unwrap();
        let process = Process::start(python, |command| {
            command.arg(folder.join("serve.py")).arg(folder.join("tools.jinja")).arg(&exchanges);
            command.env("PYTHONDONTWRITEBYTECODE", "1");
        });
        let line = process.line("serving http").await;
        Self { _process: process, url: line["serving ".len()..].to_owned(), exchanges }
    }

    /// Everything that was said until now, in order.
    pub(crate) fn said(&self) -> Vec<Exchange> {
        std::fs::read_to_string(&self.exchanges).unwrap().lines().map(Exchange::parse).collect()
    }
}
