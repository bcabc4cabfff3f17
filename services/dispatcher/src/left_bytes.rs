//! Bounds what stays on the stream of results for dispatchers of a newer version.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Bytes that messages of one worker identity have on the stream at most while they are left: a sixteenth of it. What does not fit becomes
/// a dead letter at once, or one identity that names a version of its own invention would fill the stream of all.
const MOST: usize = 64 * 1024 * 1024;
/// The longest pause before a message that was left comes again: what came within it is about what is on the stream.
const WITHIN: Duration = Duration::from_mins(1);

/// Bytes of messages that were left, by the subject of their worker identity, since a time.
#[derive(Default)]
pub(crate) struct LeftBytes(Mutex<HashMap<String, (Instant, usize)>>);

impl LeftBytes {
    /// Counts a message; returns whether it may be left, too.
    pub(crate) fn has_room(&self, subject: &str, bytes: usize) -> bool {
        let mut all = self.0.lock();
        all.retain(|_, (since, _)| since.elapsed() < WITHIN);
        let (_, left) = all.entry(subject.to_owned()).or_insert((Instant::now(), 0));
        *left = left.saturating_add(bytes);
        *left <= MOST
    }
}
