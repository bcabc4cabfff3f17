//! Times before which no end of a call or task can appear any more: whoever follows ends goes no further.

use std::time::Duration;

use redial_store::{Time, stats::Fence};

/// A statement takes the time of an end when it begins, and enters the transactions that a fence sees when it first writes.
/// Postgres ends a dispatcher's statement after 8 s.
const STATEMENT: Duration = Duration::from_secs(15);
/// A transaction that runs for longer is worth a warning: until it ends, nothing new is followed.
const HELD_UP: Duration = Duration::from_mins(10);

/// Finds times before which no end of a call can appear any more.
pub(crate) struct Bounds {
    /// What waits for them, for the warning.
    what: &'static str,
    /// The last fence that was not passed when it was compared.
    waiting: Option<Fence>,
    warned: bool,
}

impl Bounds {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what, waiting: None, warned: false }
    }

    /// True before the first fence.
    pub(crate) const fn is_new(&self) -> bool {
        self.waiting.is_none()
    }

    /// The latest such time that is known, once a fence was passed.
    pub(crate) fn next(&mut self, now: Fence) -> Option<Time> {
        let Some(waiting) = self.waiting else {
            self.waiting = Some(now);
            return None;
        };
        if now.is_before(&waiting) {
            (self.waiting, self.warned) = (Some(now), false);
            return None;
        }
        if waiting.is_passed_by(&now) {
            (self.waiting, self.warned) = (Some(now), false);
            return Some(waiting.at - STATEMENT);
        }
        let held_up = (now.at - waiting.at).to_std().is_ok_and(|held_up| held_up > HELD_UP);
        if held_up && !self.warned {
            let what = self.what;
            tracing::warn!(since = %waiting.at, what, "A long transaction delays what follows ended calls; see pg_stat_activity");
            self.warned = true;
        }
        None
    }
}
