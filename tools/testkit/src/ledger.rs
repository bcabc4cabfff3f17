//! The file in which tools record what they do: the effects that Redial must not repeat.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use redial_proto::CallId;
use redial_tools::Context;
use strum::EnumString;
use uuid::Uuid;

use crate::{home, wait};

/// What a tool did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString)]
pub enum ToolEvent {
    Started,
    /// It had its effect.
    Effect,
    Ended,
    /// It was stopped before it returned.
    Stopped,
}

#[derive(Clone, Debug)]
pub struct Entry {
    /// The time by the kernel's clock.
    pub at: DateTime<Utc>,
    pub event: ToolEvent,
    pub call: CallId,
    pub attempt: u32,
    pub key: String,
    /// In which execution: a released attempt is executed again under its number.
    pub execution: Uuid,
}

/// A file with a line for each event; many tools in many processes write to it at once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
    file: Arc<File>,
}

impl Ledger {
    pub fn create() -> Self {
        Self::open(&home::unique_path("ledger"))
    }

    /// Opens a ledger that another process may have created.
    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        Self { path: path.to_owned(), file: Arc::new(file) }
    }

    /// Returns the path, for other processes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line with one write.
    pub fn note(&self, event: ToolEvent, context: &Context, execution: Uuid) {
        let Context { call, attempt, idempotency_key: key, .. } = context;
        let line = format!("{} {event:?} {call} {attempt} {key} {execution}\n", micros());
        (&*self.file).write_all(line.as_bytes()).unwrap();
    }

    /// Returns all lines so far. A reader may see the beginning of a line that is being written.
    pub fn entries(&self) -> Vec<Entry> {
        let text = std::fs::read_to_string(&self.path).unwrap();
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        complete.lines().map(parse).collect()
    }

    /// Counts the lines of a kind that a call has so far.
    pub fn count(&self, event: ToolEvent, call: CallId) -> usize {
        self.entries().iter().filter(|entry| entry.event == event && entry.call == call).count()
    }

    /// Waits until there are so many lines of a kind.
    pub async fn reaches(&self, event: ToolEvent, count: usize) -> Vec<Entry> {
        wait::until(&format!("{count} lines {event:?} in the ledger"), async || {
            let found: Vec<Entry> = self.entries().into_iter().filter(|entry| entry.event == event).collect();
            (found.len() >= count).then_some(found)
        })
        .await
    }
}

/// Reads the time in µs by a direct system call: a worker whose clock a test shifts records the real time, too.
fn micros() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

fn parse(line: &str) -> Entry {
    let words: Vec<&str> = line.split(' ').collect();
    let [at, event, call, attempt, key, execution] = words[..] else { panic!("not a line of a ledger: {line:?}") };
    Entry {
        at: DateTime::from_timestamp_micros(at.parse().unwrap()).unwrap(),
        event: event.parse().unwrap(),
        call: call.parse().unwrap(),
        attempt: attempt.parse().unwrap(),
        key: key.to_owned(),
        execution: execution.parse().unwrap(),
    }
}
