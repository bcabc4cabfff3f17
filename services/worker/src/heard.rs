//! What the worker last heard of the database's clock, and until when its claims are granted.
//!
//! A claim that is under way when its worker dies, or gives it up, must not be granted later: nobody would run that attempt, and an
//! `unsafe` call would end `unknown` though it never began. So each claim names the last moment at which it may be granted.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

/// An answer that says what the database's clock showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    at: DateTime<Utc>,
    /// The clock showed `at` after the worker had asked,
    asked: Instant,
    /// and before it had the answer.
    answered: Instant,
    lease: Duration,
}

/// Until when a claim is granted for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimTime {
    /// By the database's clock.
    pub(crate) not_after: DateTime<Utc>,
    /// By the worker's, that moment has not come before this,
    pub(crate) lasts_until: Instant,
    /// and it has passed by this.
    pub(crate) over_at: Instant,
}

impl Heard {
    /// Notes an answer that has just come.
    pub(crate) fn now(at: DateTime<Utc>, asked: Instant, lease: Duration) -> Self {
        Self { at, asked, answered: Instant::now(), lease }
    }

    /// Returns what the database's clock shows now, if not more.
    pub(crate) fn at_least(&self, now: Instant) -> DateTime<Utc> {
        self.at + now.saturating_duration_since(self.answered)
    }

    /// Returns the time of a claim that is sent now; `None` if nothing was heard for half a lease, though there is an
    /// answer every third: a dispatcher or the database hangs, and would grant the claim when this worker may be gone.
    ///
    /// It is a third of a lease: who waits that long for an answer meets an outage. And it ends two thirds of a lease
    /// after the last answer, so that nothing is granted to a worker that was silent for longer.
    pub(crate) fn claim_time(&self, now: Instant) -> Option<ClaimTime> {
        let age = now.saturating_duration_since(self.answered);
        let lasts = (age + self.lease / 3).min(self.lease * 2 / 3);
        (age <= self.lease / 2).then(|| ClaimTime {
            not_after: self.at + lasts,
            lasts_until: self.asked + lasts,
            over_at: self.answered + lasts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_claim_lasts_a_third_of_a_lease_and_never_two_thirds_after_the_last_answer() {
        let (asked, secs) = (Instant::now(), Duration::from_secs);
        tokio::time::advance(secs(2)).await;
        let heard = Heard::now(DateTime::UNIX_EPOCH, asked, secs(15));
        for (age, lasts) in [(0, Some(5)), (3, Some(8)), (5, Some(10)), (7, Some(10)), (8, None)] {
            let found = heard.claim_time(heard.answered + secs(age));
            let time = |lasts| ClaimTime {
                not_after: DateTime::UNIX_EPOCH + secs(lasts),
                lasts_until: asked + secs(lasts),
                over_at: asked + secs(2) + secs(lasts),
            };
            assert_eq!(found, lasts.map(time), "{age} s after the answer");
            assert_eq!(heard.at_least(heard.answered + secs(age)), DateTime::UNIX_EPOCH + secs(age));
        }
    }
}
