//! Low-water marks: where looks for what is due begin.
//!
//! While somebody holds an old snapshot, such as a `pg_dump` for an hour, Postgres removes no dead entry of an index. They pile up at
//! the low end of an index of due times, and every look for what is due would walk over all of them. So a look begins where the one
//! before found nothing any more, less a margin for transactions that were about to commit then: a short one, because every call that ended
//! within it is walked over, and about every ten seconds a long one, for the slowest transactions. From time to time a look begins at the
//! lowest entry: what an even slower transaction wrote, or a standby that was promoted, is found late and not never.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use parking_lot::{Mutex, MutexGuard};
use redial_records::Time;

/// A transaction that takes longer than this is ended by its time limits.
const MARGIN: TimeDelta = TimeDelta::seconds(10);
/// Most transactions take less.
const SHORT: TimeDelta = TimeDelta::seconds(1);
/// Between two looks for calls that find what slower ones wrote.
const WIDE: TimeDelta = TimeDelta::seconds(10);
/// Between two marks of tasks. That of the inbox is at least as old: an item with a lower number may be committed later.
const TURN: Duration = Duration::from_secs(10);
/// Between two looks from the lowest entry on.
const WHOLE: Duration = Duration::from_mins(5);

/// The marks of one process.
#[derive(Debug, Default)]
pub(crate) struct LowWater {
    calls: Mutex<CallMarks>,
    tasks: Mutex<TaskMarks>,
}

impl LowWater {
    pub(crate) fn calls(&self) -> MutexGuard<'_, CallMarks> {
        self.calls.lock()
    }

    pub(crate) fn tasks(&self) -> MutexGuard<'_, TaskMarks> {
        self.tasks.lock()
    }
}

/// Where looks into an index of times begin: below its mark the last look found nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// `None`: looks begin at the lowest entry.
    lowest: Option<Time>,
    /// When the last look with the wide margin began.
    wide: Option<Instant>,
}

impl Mark {
    /// Makes a mark at this time of the database.
    pub const fn new(lowest: Time) -> Self {
        Self { lowest: Some(lowest), wide: None }
    }

    /// Returns where a look at this moment begins; `None`: at the lowest entry.
    pub fn begin(&self, at: Instant) -> Option<Time> {
        let margin = if self.is_wide(at) { MARGIN + WIDE } else { SHORT };
        self.lowest.map(|lowest| lowest - margin)
    }

    /// Takes note of the lowest entry, as far as it is not far from being due, that a look found which began at that moment, at this
    /// time of the database.
    pub fn found(&mut self, lowest: Option<Time>, now: Time, at: Instant) {
        let wide = if self.is_wide(at) { Some(at) } else { self.wide };
        *self = Self { lowest: Some(lowest.map_or(now, |lowest| lowest.min(now))), wide };
    }

    /// True if this was the lowest entry at the last look.
    pub fn is_at(&self, lowest: Time) -> bool {
        self.lowest == Some(lowest)
    }

    /// Takes note of an entry at this time; true if it is below the mark.
    pub fn lower(&mut self, to: Time) -> bool {
        let is_lower = self.lowest.is_some_and(|lowest| to < lowest);
        if is_lower {
            self.lowest = Some(to);
        }
        is_lower
    }

    fn is_wide(&self, at: Instant) -> bool {
        self.wide.is_none_or(|wide| at.duration_since(wide) >= WIDE.to_std().unwrap_or_default())
    }
}

/// Marks in the two parts of `calls_wake`: of calls that wait in the backlog, and of the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallMarks {
    others: Mark,
    backlog: Mark,
    whole: Option<Instant>,
}

impl CallMarks {
    /// Returns where looks for both at this moment begin.
    pub(crate) fn begin(&mut self, at: Instant) -> [Option<Time>; 2] {
        if is_whole(self.whole, at) {
            *self = Self::default();
        }
        [self.others.begin(at), self.backlog.begin(at)]
    }

    /// Takes note of the lowest entries of both, at this time of the database, by a look that began at that moment.
    pub(crate) fn found(&mut self, others: Option<Time>, backlog: Option<Time>, now: Time, at: Instant) {
        self.others.found(others, now, at);
        self.backlog.found(backlog, now, at);
        self.whole.get_or_insert(at);
    }
}

/// Marks in the index of tasks' due times, and in the inbox: a number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskMarks {
    wake: Mark,
    item: Option<i64>,
    /// The lowest item at the last turn: the mark from the next turn on.
    next_item: Option<i64>,
    turned: Option<Instant>,
    whole: Option<Instant>,
}

/// Where looks for tasks begin. `None`: at the lowest entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskLook {
    pub(crate) item: Option<i64>,
    pub(crate) wake_at: Option<Time>,
    /// The lowest entries are to be read: it is the marks' turn.
    pub(crate) is_turn: bool,
}

impl TaskMarks {
    /// Returns where a look at this moment begins.
    pub(crate) fn begin(&mut self, at: Instant) -> TaskLook {
        if is_whole(self.whole, at) {
            *self = Self::default();
        }
        let is_turn = self.turned.is_none_or(|turned| at.duration_since(turned) >= TURN);
        TaskLook { item: self.item, wake_at: self.wake.begin(at), is_turn }
    }

    /// Takes note of the lowest item, or the last one that there was, and the lowest due time, at this time of the
    /// database.
    pub(crate) fn found(&mut self, item: Option<i64>, wake_at: Option<Time>, now: Time, at: Instant) {
        self.wake.found(wake_at, now, at);
        (self.item, self.next_item) = (self.next_item, item);
        self.turned = Some(at);
        self.whole.get_or_insert(at);
    }
}

fn is_whole(whole: Option<Instant>, at: Instant) -> bool {
    whole.is_none_or(|whole| at.duration_since(whole) >= WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64) -> Time {
        Time::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[test]
    fn a_look_begins_where_nothing_was_left_less_a_margin() {
        let (mut marks, start) = (CallMarks::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(marks.begin(at(0)), [None, None]);
        marks.found(Some(time(500)), None, time(1_000), at(0));
        assert_eq!(marks.begin(at(1)), [Some(time(499)), Some(time(999))]);
        // What is due later says nothing about what will be written until then.
        marks.found(Some(time(9_000)), Some(time(20)), time(1_001), at(1));
        assert_eq!(marks.begin(at(2)), [Some(time(1_000)), Some(time(19))]);
        assert!(!marks.others.lower(time(1_001)) && marks.others.lower(time(7)));
        assert_eq!(marks.begin(at(2)), [Some(time(6)), Some(time(19))]);
    }

    /// What was written ten seconds before it was committed, and that was right after a look, is found by one of these.
    #[test]
    fn each_ten_seconds_a_look_begins_early_enough_for_the_slowest_transactions() {
        let (mut marks, start) = (CallMarks::default(), Instant::now());
        let at = |seconds: i64| start + Duration::from_secs(seconds.unsigned_abs());
        marks.begin(at(0));
        let mut wide = Vec::new();
        for second in 0..40 {
            let [begun, _] = marks.begin(at(second));
            if let Some(margin) = begun.map(|begun| time(second - 1) - begun).filter(|margin| *margin != SHORT) {
                wide.push((second, margin.num_seconds()));
            }
            marks.found(None, None, time(second), at(second));
        }
        assert_eq!(wide, [(10, 20), (20, 20), (30, 20)]);
    }

    #[test]
    fn a_look_begins_at_the_lowest_entry_from_time_to_time() {
        let (mut marks, start) = (CallMarks::default(), Instant::now());
        marks.begin(start);
        marks.found(None, None, time(0), start);
        let almost = start + Duration::from_secs(299);
        assert!(marks.begin(almost)[0].is_some());
        marks.found(None, None, time(299), almost);
        assert_eq!(marks.begin(start + WHOLE), [None, None]);
        let mut marks = TaskMarks::default();
        marks.begin(start);
        marks.found(Some(1), None, time(0), start);
        assert_eq!(marks.begin(start + WHOLE).wake_at, None);
    }

    /// An item that has a lower number may be committed later than one that has been seen.
    #[test]
    fn the_mark_of_the_inbox_is_a_turn_old() {
        let (mut marks, start) = (TaskMarks::default(), Instant::now());
        let turn = |n| start + TURN * n;
        assert!(marks.begin(turn(0)).is_turn);
        marks.found(Some(7), None, time(0), turn(0));
        let begun = marks.begin(turn(0) + Duration::from_secs(1));
        assert!(begun.item.is_none() && !begun.is_turn);
        assert!(marks.begin(turn(1)).is_turn);
        marks.found(Some(90), None, time(10), turn(1));
        assert_eq!(marks.begin(turn(1)).item, Some(7));
        marks.found(Some(95), None, time(20), turn(2));
        assert_eq!(marks.begin(turn(2)).item, Some(90));
    }
}
