//! Watches the machine of the run. A time in which the machine itself stood still says nothing about Redial.
//!
//! A thread sleeps again and again, and measures how late it wakes: by the monotonic clock, and by the time of day, which
//! goes on while a machine is suspended.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use redial_testkit::Disturbance;

/// One sleep.
const NAP: Duration = Duration::from_millis(50);
/// Waking up so much too late is a standstill: many times what a busy machine is late (a few ms: who sleeps most of the time
/// runs first), and less than a third of a lease, the time between two heartbeats.
const LATE: Duration = Duration::from_millis(250);
/// A run in which the machine stood still for more than this part proves nothing.
const MOST: f64 = 0.1;

/// Watches until it is dropped.
pub(crate) struct Watchdog {
    from: DateTime<Utc>,
    seen: Arc<Mutex<Vec<Standstill>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A time in which the machine stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standstill {
    pub(crate) from: DateTime<Utc>,
    pub(crate) until: DateTime<Utc>,
}

/// All of them, in order, and how long the watch was.
#[derive(Clone, Debug)]
pub(crate) struct Standstills {
    pub(crate) all: Vec<Standstill>,
    pub(crate) watched: Duration,
}

impl Watchdog {
    pub(crate) fn start() -> Self {
        let (seen, over) = (Arc::<Mutex<Vec<Standstill>>>::default(), Arc::<AtomicBool>::default());
        let (shared, stop) = (Arc::clone(&seen), Arc::clone(&over));
        let watch = move || {
            while !stop.load(Ordering::Relaxed) {
                if let Some(standstill) = nap() {
                    shared.lock().push(standstill);
                }
            }
        };
        // Without the thread nothing is excused.
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(watch).ok();
        Self { from: Utc::now(), seen, over, thread }
    }

    pub(crate) fn seen(&self) -> Standstills {
        let all = self.seen.lock().clone();
        Standstills { all, watched: (Utc::now() - self.from).to_std().unwrap_or_default() }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}

fn nap() -> Option<Standstill> {
    let (slept, day) = (Instant::now(), Utc::now());
    thread::sleep(NAP);
    let woken = Utc::now();
    let late = slept.elapsed().max((woken - day).to_std().unwrap_or_default()).saturating_sub(NAP);
    (late >= LATE).then(|| Standstill { from: woken - late, until: woken })
}

impl Standstill {
    fn time(self) -> Duration {
        (self.until - self.from).to_std().unwrap_or_default()
    }
}

impl Standstills {
    /// Adds up the time of all of them.
    pub(crate) fn total(&self) -> Duration {
        self.all.iter().map(|one| one.time()).sum()
    }

    /// True if the machine stood still for so long that the run proves nothing.
    pub(crate) fn are_too_many(&self) -> bool {
        self.total().as_secs_f64() > MOST * self.watched.as_secs_f64()
    }

    /// Returns how long the machine stood still in this time.
    pub(crate) fn within(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Duration {
        self.all.iter().map(|one| Standstill { from: one.from.max(from), until: one.until.min(until) }.time()).sum()
    }

    /// Returns the times in which leases may be lost: a machine that stands still sends no heartbeats. What is shorter
    /// than the time between two heartbeats, a third of a lease, costs none.
    pub(crate) fn disturbances(&self, lease: Duration) -> impl Iterator<Item = Disturbance> {
        let long = self.all.iter().filter(move |one| one.time() >= lease / 3);
        long.map(|one| Disturbance { worker: None, from: one.from, until: Some(one.until) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + chrono::TimeDelta::milliseconds(ms)
    }

    fn seen(windows: &[(i64, i64)]) -> Standstills {
        let all = windows.iter().map(|(from, until)| Standstill { from: at(*from), until: at(*until) }).collect();
        Standstills { all, watched: Duration::from_secs(100) }
    }

    #[test]
    fn only_what_overlaps_a_standstill_is_excused() {
        let seen = seen(&[(1_000, 2_000), (5_000, 5_300)]);
        let within = |from, until| seen.within(at(from), at(until)).as_millis();
        assert_eq!([within(0, 900), within(2_000, 4_999), within(5_300, 9_000)], [0, 0, 0]);
        assert_eq!([within(0, 1_100), within(1_500, 5_100), within(0, 9_000)], [100, 600, 1_300]);
    }

    #[test]
    fn a_short_standstill_excuses_no_lost_lease() {
        let seen = seen(&[(1_000, 1_999), (5_000, 6_000)]);
        let excused: Vec<_> =
            seen.disturbances(Duration::from_secs(3)).map(|one| (one.worker, one.from, one.until)).collect();
        assert_eq!(excused, [(None, at(5_000), Some(at(6_000)))]);
    }

    #[test]
    fn a_machine_that_mostly_stands_still_proves_nothing() {
        assert!(!seen(&[]).are_too_many() && !seen(&[(0, 10_000)]).are_too_many());
        assert!(seen(&[(0, 10_001)]).are_too_many());
    }
}
