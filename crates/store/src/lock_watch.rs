//! Remembers which calls stay locked.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use redial_proto::CallId;

/// For so long after a statement timed out because of locked calls, statements look first whether these are still locked: the next one
/// would time out again, after 4 s. Of others nothing is looked at, because locks last for milliseconds.
const WARY: Duration = Duration::from_mins(1);

/// Calls that were locked when a statement timed out, and when that was.
#[derive(Debug, Default)]
pub(crate) struct LockWatch(Mutex<HashMap<CallId, Instant>>);

impl LockWatch {
    /// Returns those of these calls that were locked lately.
    pub(crate) fn among(&self, calls: &[CallId]) -> Vec<CallId> {
        let mut met = self.0.lock();
        met.retain(|_, at| at.elapsed() < WARY);
        if met.is_empty() { Vec::new() } else { calls.iter().filter(|call| met.contains_key(call)).copied().collect() }
    }

    /// Takes note of calls that a statement waited for in vain.
    pub(crate) fn met(&self, locked: &HashSet<CallId>) {
        self.0.lock().extend(locked.iter().map(|call| (*call, Instant::now())));
    }
}
