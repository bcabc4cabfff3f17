//! The times in which the machine stood still, and what they excuse.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use redial_testkit::Disturbance;

/// Windows that are less than this apart are one: between them the machine did not come back to itself.
const APART: TimeDelta = TimeDelta::seconds(1);
/// A run in which the machine stood still for more than this part proves nothing.
const MOST: f64 = 0.1;

/// A time in which the machine stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: DateTime<Utc>,
    pub(crate) until: DateTime<Utc>,
}

impl Window {
    pub(crate) fn time(self) -> Duration {
        (self.until - self.from).to_std().unwrap_or_default()
    }
}

/// All of them.
#[derive(Clone, Debug)]
pub(crate) struct Standstills {
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    /// In order, and apart.
    windows: Vec<Window>,
    /// The part of the processors' time that other machines took; `None` if the system does not say.
    pub(crate) stolen: Option<f64>,
    /// The part of the time in which something waited for a processor; `None` if the system does not say.
    pub(crate) waited: Option<f64>,
}

impl Standstills {
    /// None yet.
    pub(crate) fn since(from: DateTime<Utc>) -> Self {
        Self { from, until: from, windows: Vec::new(), stolen: None, waited: None }
    }

    /// The same, watched until then.
    pub(super) fn until(self, until: DateTime<Utc>) -> Self {
        Self { until, ..self }
    }

    #[cfg(test)]
    pub(crate) fn of(from: DateTime<Utc>, until: DateTime<Utc>, windows: impl IntoIterator<Item = Window>) -> Self {
        let mut seen = Self { until, ..Self::since(from) };
        windows.into_iter().for_each(|window| seen.add(window));
        seen
    }

    /// Takes note of a window that ends now.
    pub(super) fn add(&mut self, mut window: Window) {
        while let Some(last) = self.windows.pop_if(|last| window.from - last.until < APART) {
            window.from = window.from.min(last.from);
            window.until = window.until.max(last.until);
        }
        self.windows.push(window);
    }

    /// When the watch began.
    pub(crate) fn from(&self) -> DateTime<Utc> {
        self.from
    }

    /// The windows, in order.
    pub(crate) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// The time of all windows.
    pub(crate) fn total(&self) -> Duration {
        self.windows.iter().map(|window| window.time()).sum()
    }

    /// The time of the longest one.
    pub(crate) fn longest(&self) -> Duration {
        self.windows.iter().map(|window| window.time()).max().unwrap_or_default()
    }

    /// The part of the run in which the machine stood still.
    pub(crate) fn part(&self) -> f64 {
        let run = Window { from: self.from, until: self.until }.time().as_secs_f64();
        if run > 0.0 { self.total().as_secs_f64() / run } else { 0.0 }
    }

    /// The machine stood still for so long that the run proves nothing.
    pub(crate) fn are_too_many(&self) -> bool {
        self.part() > MOST
    }

    /// How long the machine stood still in this time.
    pub(crate) fn within(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Duration {
        let common = self.windows.iter().map(|one| Window { from: one.from.max(from), until: one.until.min(until) });
        common.map(Window::time).sum()
    }

    /// A machine that stands still sends no heartbeats: leases that were held meanwhile may be lost. What is shorter than
    /// the time between two heartbeats, a third of a lease, costs none.
    pub(crate) fn disturbances(&self, lease: Duration) -> impl Iterator<Item = Disturbance> {
        let long = self.windows.iter().filter(move |window| window.time() >= lease / 3);
        long.map(|window| Disturbance { worker: None, from: window.from, until: Some(window.until) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds(ms)
    }

    fn seen(windows: &[(i64, i64)]) -> Standstills {
        let windows = windows.iter().map(|(from, until)| Window { from: at(*from), until: at(*until) });
        Standstills::of(at(0), at(100_000), windows)
    }

    #[test]
    fn windows_that_are_close_are_one() {
        let seen = seen(&[(1_000, 1_300), (2_200, 2_600), (4_000, 4_400), (3_500, 4_500), (9_000, 9_500)]);
        let windows: Vec<_> = seen.windows().iter().map(|one| (one.from, one.until)).collect();
        assert_eq!(windows, [(at(1_000), at(4_500)), (at(9_000), at(9_500))]);
        assert_eq!((seen.total(), seen.longest()), (Duration::from_secs(4), Duration::from_millis(3_500)));
    }

    #[test]
    fn only_what_overlaps_a_window_is_excused() {
        let seen = seen(&[(1_000, 2_000), (5_000, 5_300)]);
        let within = |from, until| seen.within(at(from), at(until)).as_millis();
        assert_eq!([within(0, 900), within(2_000, 4_999), within(5_300, 9_000)], [0, 0, 0]);
        assert_eq!([within(0, 1_100), within(1_500, 5_100), within(0, 9_000)], [100, 600, 1_300]);
    }

    #[test]
    fn a_short_window_excuses_no_lost_lease() {
        let seen = seen(&[(1_000, 1_999), (5_000, 6_000)]);
        let excused: Vec<_> =
            seen.disturbances(Duration::from_secs(3)).map(|one| (one.worker, one.from, one.until)).collect();
        assert_eq!(excused, [(None, at(5_000), Some(at(6_000)))]);
    }

    #[test]
    fn a_machine_that_mostly_stands_still_proves_nothing() {
        assert!(!seen(&[]).are_too_many());
        assert!(!seen(&[(0, 10_000)]).are_too_many());
        assert!(seen(&[(0, 10_001)]).are_too_many());
        assert!((seen(&[(0, 25_000)]).part() - 0.25).abs() < 1e-9);
        assert!(!Standstills::since(at(0)).are_too_many());
    }
}
