//! Remembers that calls stay locked.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// For so long after a statement timed out because of a lock, statements look for locks first: the next one would time out again, after
/// 4 s. Otherwise nothing is looked for, because locks last for milliseconds.
const WARY: Duration = Duration::from_mins(1);

/// When a statement last met calls that stay locked.
#[derive(Debug, Default)]
pub(crate) struct LockWatch(Mutex<Option<Instant>>);

impl LockWatch {
    pub(crate) fn is_wary(&self) -> bool {
        self.0.lock().is_some_and(|met| met.elapsed() < WARY)
    }

    pub(crate) fn met(&self) {
        *self.0.lock() = Some(Instant::now());
    }
}
