//! How far the clock of this process is behind the database's.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime},
};

use redial_records::Time;

use crate::StoreError;

/// Ids begin with the time at which they were made, by the clock of this process. With such an id new work would sort before what others
/// wrote long ago, into partitions that retention may drop soon. A clock that is hours ahead finds no partition; what is behind always
/// finds one. No clock that anything sets is off by so much.
const MOST: Duration = Duration::from_hours(1);

/// The difference when the database was last asked for its time.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    behind_ms: AtomicI64,
}

impl Clock {
    /// Takes note of what both clocks show.
    pub(crate) fn seen(&self, database: Time, own: SystemTime) {
        self.behind_ms.store((database - Time::from(own)).num_milliseconds(), Ordering::Relaxed);
    }

    /// Fails if nothing may be written with ids of this process.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let behind = Duration::from_millis(u64::try_from(self.behind_ms.load(Ordering::Relaxed)).unwrap_or_default());
        if behind > MOST { Err(StoreError::ClockBehind(behind)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_hours_behind_is_refused_until_it_is_set_right() {
        let (clock, own) = (Clock::default(), SystemTime::now());
        assert!(clock.check().is_ok(), "nothing is known yet");
        for (behind, fits) in [(120, false), (61, false), (59, true), (0, true), (-600, true)] {
            clock.seen(Time::from(own) + chrono::TimeDelta::minutes(behind), own);
            assert_eq!(clock.check().is_ok(), fits, "{behind} minutes");
        }
        clock.seen(Time::from(own) + chrono::TimeDelta::hours(3), own);
        let error = clock.check().unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("is 10800s behind the database's"), "{error}");
    }
}
