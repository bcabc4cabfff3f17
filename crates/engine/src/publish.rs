//! When the job of an unclaimed call is published again.
//!
//! A job can get lost: the dispatcher dies between the commit and the publish, or the stream's store is wiped. It can
//! also just wait in a long queue. Publishing again is harmless to correctness (a claim decides) but not to
//! the servers, so the waits double, and for a pool whose queue is not empty nothing is published again for a while.

use crate::{Time, span::ms};

/// How long a published job may stay unclaimed before the sweeper looks at its call, in ms.
pub const FIRST_CHECK_MS: u64 = 10_000;
/// The longest wait between two checks, in ms.
pub const MAX_CHECK_MS: u64 = 300_000;
/// While jobs of the pool are still waiting on the stream, a job is taken for one of them this long, in ms.
pub const ASSUME_QUEUED_MS: u64 = 600_000;

/// Jobs published again in one pass of a sweep, or in one second after a loss, at most: the sweeper must not become the
/// storm itself.
pub const MAX_REPUBLISHED: u32 = 5_000;
/// When that many were published again, the others are checked again after this, in ms.
pub const PAUSE_MS: u64 = 1_000;

/// What to do about a call that no worker claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclaimed {
    /// Publish its job again, and look again then.
    Publish {
        /// The next check.
        check_at: Time,
    },
    /// Its job is likely still queued: only look again then.
    Wait {
        /// The next check.
        check_at: Time,
    },
}

/// Decides about a call whose job was published `publish_no` times, last at `published_at`.
/// `queued` says that the pool's queue still holds jobs that no worker has pulled.
pub fn unclaimed(publish_no: u32, published_at: Time, queued: bool, now: Time) -> Unclaimed {
    if queued && now - published_at < ms(ASSUME_QUEUED_MS) {
        let waited = u64::try_from((now - published_at).num_milliseconds()).unwrap_or(0);
        return Unclaimed::Wait { check_at: now + ms(waited.clamp(FIRST_CHECK_MS, MAX_CHECK_MS)) };
    }
    Unclaimed::Publish { check_at: now + ms(check_wait_ms(publish_no)) }
}

/// The wait after the publication number `publish_no` (from 1), in ms.
pub fn check_wait_ms(publish_no: u32) -> u64 {
    FIRST_CHECK_MS.saturating_mul(1_u64 << publish_no.min(16)).min(MAX_CHECK_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes() {
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 40].map(check_wait_ms),
            [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]
        );
    }

    #[test]
    fn a_full_queue_is_given_time_but_not_without_limit() {
        let start = Time::default();
        let at = |s: u64| start + ms(s * 1000);
        assert_eq!(unclaimed(1, start, true, at(10)), Unclaimed::Wait { check_at: at(20) });
        assert_eq!(unclaimed(1, start, true, at(40)), Unclaimed::Wait { check_at: at(80) });
        assert!(matches!(unclaimed(1, start, true, at(600)), Unclaimed::Publish { .. }));
        assert_eq!(unclaimed(1, start, false, at(10)), Unclaimed::Publish { check_at: at(30) });
    }
}
