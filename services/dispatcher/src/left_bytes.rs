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
pub(crate) const WITHIN: Duration = Duration::from_mins(1);

/// Bytes of messages that were left, by the subject of their worker identity, since a time.
#[derive(Default)]
pub(crate) struct LeftBytes(Mutex<HashMap<String, (Instant, usize)>>);

impl LeftBytes {
    /// Says whether a message may be left, too, and counts it then. `pause`: how long ago it was left before, perhaps
    /// to another process. If that was since the count began, it is counted.
    pub(crate) fn has_room(&self, subject: &str, bytes: usize, pause: Option<Duration>, now: Instant) -> bool {
        let mut all = self.0.lock();
        all.retain(|_, (since, _)| now - *since < WITHIN);
        let (since, left) = all.entry(subject.to_owned()).or_insert((now, 0));
        if pause.is_some_and(|pause| pause < now - *since) {
            return true;
        }
        let with_it = left.saturating_add(bytes);
        if with_it <= MOST {
            *left = with_it;
        }
        with_it <= MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_once_a_minute_however_often_it_comes() {
        let (left, begin) = (LeftBytes::default(), Instant::now());
        let comes = |pause: Option<u64>, second: u64, bytes: usize| {
            left.has_room("a", bytes, pause.map(Duration::from_secs), begin + Duration::from_secs(second))
        };
        assert!(comes(None, 0, 1), "the count begins");
        assert!(comes(None, 1, MOST / 2));
        for (pause, second) in [(5, 6), (10, 16), (15, 31), (20, 51)] {
            assert!(comes(Some(pause), second, MOST / 2));
        }
        assert!(comes(None, 52, MOST / 2 - 1), "there is room for as much");
        assert!(!comes(None, 53, 1), "and for no more");
        assert!(comes(Some(20), 54, MOST / 2 - 1), "what is left stays");
        // The next count.
        assert!(comes(Some(25), 76, MOST / 2) && comes(Some(60), 114, MOST / 2 - 1));
        assert!(!comes(None, 115, 2) && comes(None, 115, 1));
    }
}
