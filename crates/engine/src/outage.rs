//! Notices outages, after which no lease may count as expired until workers had time to renew.
//!
//! A dispatcher reports what it observes: each sweep over due calls, each statement of it, and each check of the
//! streams and the database. Moments are given as the time since some fixed start.

use std::time::Duration;

use crate::mutation::{self, Mutation};

/// The longest time between two sweeps, and between two checks.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Something that a dispatcher observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    SweepBegan {
        /// NATS is connected, and was so without a break since the last sweep began.
        connected: bool,
    },
    /// The database answered a statement of the sweep after this time.
    Answered {
        after: Duration,
    },
    SweepEnded {
        failed: bool,
    },
    /// The database's clock was read.
    DatabaseTime {
        /// Its time, since some fixed moment.
        since_epoch: Duration,
    },
    CheckEnded {
        began: Duration,
        /// One of the two failed.
        failed: bool,
    },
}

/// Knows since when Postgres and NATS were reached without a break.
#[derive(Clone, Copy, Debug)]
pub struct OutageDetector {
    lease: Duration,
    longest_reconnect: Duration,
    healthy_since: Duration,
    /// When the last check that succeeded began.
    checked_at: Duration,
    check_failed: bool,
    /// When the last sweep ended.
    swept_at: Duration,
    sweep_failed: bool,
    /// The database's time when it was read last, and when that was.
    database_time: Option<(Duration, Duration)>,
}

impl OutageDetector {
    /// Makes a detector for leases of this length. `longest_reconnect`: the longest time that a worker takes to connect
    /// to NATS again. The start counts as the end of an outage, because no dispatcher may have run before.
    pub const fn new(lease: Duration, longest_reconnect: Duration, now: Duration) -> Self {
        Self {
            lease,
            longest_reconnect,
            healthy_since: now,
            checked_at: now,
            check_failed: false,
            swept_at: now,
            sweep_failed: false,
            database_time: None,
        }
    }

    /// Returns the longest time between two checks: an outage must be noticed before a lease ends that no worker could
    /// renew.
    pub fn check_interval(&self) -> Duration {
        INTERVAL.min(self.heartbeat_interval())
    }

    /// Takes an observation into account. An outage that has just ended counts until now: this may be the first moment
    /// at which a worker could renew.
    pub fn observe(&mut self, observation: Observation, now: Duration) {
        let is_outage = match observation {
            Observation::SweepBegan { connected } => {
                self.sweep_failed || !connected || self.check_hangs(now) || self.sweep_is_late(now)
            }
            Observation::Answered { after } => self.is_slow(after),
            Observation::SweepEnded { failed } => {
                (self.swept_at, self.sweep_failed) = (now, failed);
                failed
            }
            Observation::DatabaseTime { since_epoch } => {
                let before = self.database_time.replace((since_epoch, now));
                before.is_some_and(|before| self.has_jumped(before, since_epoch, now))
            }
            Observation::CheckEnded { began, failed } => {
                let had_failed = std::mem::replace(&mut self.check_failed, failed);
                if !failed {
                    self.checked_at = began;
                }
                failed || had_failed || now.saturating_sub(began) > self.heartbeat_interval()
            }
        };
        if is_outage {
            self.healthy_since = now;
        }
    }

    /// Returns for how long no lease counts as expired: workers that were cut off by an outage, or found no dispatcher,
    /// get the time to connect again, and then a whole lease to renew or release what they hold.
    pub fn grace(&self, now: Duration) -> Duration {
        if mutation::is(Mutation::NoGraceAfterOutage) {
            return Duration::ZERO;
        }
        (self.longest_reconnect + self.lease).saturating_sub(now.saturating_sub(self.healthy_since))
    }

    /// Returns a third of a lease, in which workers send a heartbeat.
    fn heartbeat_interval(&self) -> Duration {
        self.lease / 3
    }

    /// True if a check has begun and does not end: a server hangs, though nothing has failed yet.
    fn check_hangs(&self, now: Duration) -> bool {
        now.saturating_sub(self.checked_at) > self.check_interval() + self.heartbeat_interval()
    }

    /// True if the process itself was stopped.
    fn sweep_is_late(&self, now: Duration) -> bool {
        now.saturating_sub(self.swept_at) > INTERVAL * 2 + self.heartbeat_interval()
    }

    /// True if the database's clock went further than this process's: the machine was suspended, where this clock
    /// stands still, or somebody set the database's clock. Either way, leases ended that their workers had no time to
    /// renew.
    fn has_jumped(&self, (then, at): (Duration, Duration), since_epoch: Duration, now: Duration) -> bool {
        let jump = since_epoch.saturating_sub(then).saturating_sub(now.saturating_sub(at));
        jump > (INTERVAL * 2).min(self.lease / 2)
    }

    /// True if a statement hung: no worker could renew then, whether or not anything was due. A lease was renewed at
    /// most a third of its length before; if a hang lasts the other two thirds, at least one sweep is within it.
    fn is_slow(&self, answer: Duration) -> bool {
        answer >= (INTERVAL * 2).min(self.heartbeat_interval())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);
    const RECONNECT: Duration = Duration::from_secs(3);

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(100.0 + seconds)
    }

    /// Makes a detector at second 60 of an outage-free run.
    fn without_outage() -> OutageDetector {
        let mut detector = OutageDetector::new(LEASE, RECONNECT, at(0.0));
        for second in 0..=60 {
            let now = at(f64::from(second));
            detector.observe(Observation::SweepBegan { connected: true }, now);
            detector.observe(Observation::Answered { after: Duration::from_millis(3) }, now);
            detector.observe(Observation::SweepEnded { failed: false }, now);
            detector.observe(Observation::CheckEnded { began: now, failed: false }, now);
        }
        assert_eq!(detector.grace(at(60.0)), Duration::ZERO, "no outage");
        detector
    }

    /// Observations, each at its second.
    type History<'a> = &'a [(f64, Observation)];

    /// Returns the grace in ms right after these observations.
    fn grace_after(observations: History<'_>) -> u128 {
        let mut detector = without_outage();
        for (second, observation) in observations {
            detector.observe(*observation, at(*second));
        }
        let last = observations.last().map_or(60.0, |(second, _)| *second);
        detector.grace(at(last)).as_millis()
    }

    const SWEEP: Observation = Observation::SweepBegan { connected: true };
    const WHOLE: u128 = 18_000;

    #[test]
    fn a_start_counts_as_the_end_of_an_outage() {
        let detector = OutageDetector::new(LEASE, RECONNECT, at(0.0));
        assert_eq!(detector.grace(at(0.0)), RECONNECT + LEASE);
        assert_eq!(detector.grace(at(10.0)), Duration::from_secs(8));
        assert_eq!(detector.grace(at(18.0)), Duration::ZERO);
    }

    #[test]
    fn every_kind_of_outage_lasts_until_its_end() {
        use Observation::{Answered, CheckEnded, DatabaseTime, SweepBegan, SweepEnded};
        let (failed, ended) = (SweepEnded { failed: true }, SweepEnded { failed: false });
        let answered = |ms| Answered { after: Duration::from_millis(ms) };
        let checked = |began, failed| CheckEnded { began: at(began), failed };
        let database = |time: f64| DatabaseTime { since_epoch: at(1_000.0 + time) };
        // Checks follow one another within a second; each may take a third of the lease.
        let rows: [(&str, History<'_>, u128); 21] = [
            ("a sweep", &[(61.0, SWEEP)], 0),
            ("a lost connection", &[(61.0, SweepBegan { connected: false })], WHOLE),
            ("a failed sweep", &[(61.0, failed)], WHOLE),
            ("until the next one begins", &[(61.0, failed), (62.0, SWEEP)], WHOLE),
            ("and is good", &[(61.0, failed), (62.0, SWEEP), (62.0, ended), (63.0, SWEEP)], WHOLE - 1_000),
            ("a fast answer", &[(61.0, answered(1_999))], 0),
            ("a slow answer", &[(61.0, answered(2_000))], WHOLE),
            ("a check under way", &[(65.9, ended), (66.0, SWEEP)], 0),
            ("a check that hangs", &[(65.9, ended), (66.1, SWEEP)], WHOLE),
            ("a sweep in time", &[(67.0, checked(67.0, false)), (67.0, SWEEP)], 0),
            ("a late sweep", &[(67.1, checked(67.1, false)), (67.1, SWEEP)], WHOLE),
            ("a check in time", &[(66.0, checked(61.0, false))], 0),
            ("a slow check", &[(66.1, checked(61.0, false))], WHOLE),
            ("a failed check", &[(61.0, checked(61.0, true))], WHOLE),
            ("until the next good one", &[(61.0, checked(61.0, true)), (64.0, checked(64.0, false))], WHOLE),
            (
                "and not longer",
                &[(61.0, checked(61.0, true)), (64.0, checked(64.0, false)), (65.0, checked(65.0, false))],
                WHOLE - 1_000,
            ),
            ("the database's clock", &[(61.0, database(61.0)), (62.0, database(62.0))], 0),
            ("an answer may be late", &[(61.0, database(61.0)), (62.0, database(64.0))], 0),
            ("a suspended machine", &[(61.0, database(61.0)), (62.0, database(64.1))], WHOLE),
            ("a clock that goes back ends no lease", &[(61.0, database(61.0)), (62.0, database(30.0))], 0),
            ("nothing", &[], 0),
        ];
        for (name, observations, grace) in rows {
            assert_eq!(grace_after(observations), grace, "{name}");
        }
        let mut short = OutageDetector::new(Duration::from_millis(600), RECONNECT, at(0.0));
        short.observe(answered(200), at(10.0));
        assert_eq!(short.grace(at(10.0)), RECONNECT + Duration::from_millis(600), "a third of a short lease");
    }

    #[test]
    fn checks_follow_one_another_within_a_third_of_a_short_lease() {
        assert_eq!(without_outage().check_interval(), Duration::from_secs(1));
        let short = OutageDetector::new(Duration::from_millis(600), RECONNECT, at(0.0));
        assert_eq!(short.check_interval(), Duration::from_millis(200));
    }
}
