//! Tells operators of messages and rows that a process leaves to one of a newer version.

use std::{
    collections::HashMap,
    fmt::Display,
    time::{Duration, Instant},
};

use crate::metrics;
use parking_lot::Mutex;

/// The warning about one kind of things is repeated after this.
const PAUSE: Duration = Duration::from_mins(10);

/// Counts things of one kind (`calls`, `reports` and so on) that this version cannot read, and warns of them now and then. `first` says
/// which the first of them is, and `why` it cannot be read.
pub fn set_aside(kind: &'static str, count: usize, first: &dyn Display, why: &dyn Display) {
    if count == 0 {
        return;
    }
    metrics().set_aside(kind, count as u64);
    if is_due(kind, Instant::now()) {
        tracing::warn!(
            kind,
            count,
            %first,
            %why,
            "Set aside what this version cannot read; a process of the version that wrote it will take it: if none runs, start one, \
             or see docs/UPGRADING.md"
        );
    }
}

fn is_due(kind: &'static str, now: Instant) -> bool {
    static WARNED: Mutex<Option<HashMap<&'static str, Instant>>> = Mutex::new(None);
    let mut warned = WARNED.lock();
    let last = warned.get_or_insert_default().entry(kind);
    match last {
        std::collections::hash_map::Entry::Occupied(at) if now.saturating_duration_since(*at.get()) < PAUSE => false,
        entry => {
            entry.insert_entry(now);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_once_in_ten_minutes() {
        let now = Instant::now();
        let at = |kind, minutes: u64| is_due(kind, now + Duration::from_mins(minutes));
        assert!(at("calls of this test", 0) && at("tasks of this test", 0));
        assert!(!at("calls of this test", 9));
        assert!(at("calls of this test", 10) && !at("calls of this test", 11));
    }
}
