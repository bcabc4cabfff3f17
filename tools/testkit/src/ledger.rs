//! The book in which tools write down what they do: the world that Redial must not change twice.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use redial_proto::CallId;
use redial_tools::Context;
use uuid::Uuid;

use crate::{home, wait};

/// What a tool did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It began.
    Started,
    /// It changed the world.
    Effect,
    /// It came to its end.
    Ended,
    /// It was stopped before its end.
    Stopped,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Entry {
    /// By the clock of this machine.
    pub at: DateTime<Utc>,
    /// What was done.
    pub deed: Deed,
    /// For which call.
    pub call: CallId,
    /// In which attempt.
    pub attempt: u32,
    /// Under which idempotency key.
    pub key: String,
    /// In which execution: an attempt that was given back is executed again under its number.
    pub execution: Uuid,
}

/// A file with a line for each deed; many tools in many processes write to it at once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
    file: Arc<File>,
}

impl Ledger {
    /// A new one.
    pub fn create() -> Self {
        Self::open(&home::unique_path("ledger"))
    }

    /// One that perhaps another process made.
    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        Self { path: path.to_owned(), file: Arc::new(file) }
    }

    /// Where it is, for other processes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a line, at once and whole.
    pub fn note(&self, deed: Deed, context: &Context, execution: Uuid) {
        let Context { call, attempt, idempotency_key: key, .. } = context;
        let line = format!("{} {deed:?} {call} {attempt} {key} {execution}\n", micros());
        (&*self.file).write_all(line.as_bytes()).unwrap();
    }

    /// Everything until now.
    pub fn entries(&self) -> Vec<Entry> {
        std::fs::read_to_string(&self.path).unwrap().lines().map(parse).collect()
    }

    /// How often a call came so far.
    pub fn count(&self, deed: Deed, call: CallId) -> usize {
        self.entries().iter().filter(|entry| entry.deed == deed && entry.call == call).count()
    }

    /// Waits until there are so many lines of a kind.
    pub async fn reaches(&self, deed: Deed, count: usize) -> Vec<Entry> {
        wait::until(&format!("{count} lines {deed:?} in the ledger"), async || {
            let found: Vec<Entry> = self.entries().into_iter().filter(|entry| entry.deed == deed).collect();
            (found.len() >= count).then_some(found)
        })
        .await
    }
}

/// The time in µs, from the kernel itself: a worker whose clock a test has falsified writes the truth here, too.
fn micros() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

fn parse(line: &str) -> Entry {
    let words: Vec<&str> = line.split(' ').collect();
    let [at, deed, call, attempt, key, execution] = words[..] else { panic!("no line of a ledger: {line:?}") };
    let deed = match deed {
        "Started" => Deed::Started,
        "Effect" => Deed::Effect,
        "Ended" => Deed::Ended,
        "Stopped" => Deed::Stopped,
        other => panic!("no deed: {other}"),
    };
    Entry {
        at: DateTime::from_timestamp_micros(at.parse().unwrap()).unwrap(),
        deed,
        call: call.parse().unwrap(),
        attempt: attempt.parse().unwrap(),
        key: key.to_owned(),
        execution: execution.parse().unwrap(),
    }
}
