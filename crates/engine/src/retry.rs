//! When the next attempt is due.

use redial_proto::RetryPolicy;

use crate::{Time, span::ms};

/// Returns the longest wait in ms before the attempt after `attempt`: `min(cap, initial × factor^(attempt-1))`.
pub fn longest_wait_ms(policy: &RetryPolicy, attempt: u32) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "a wait of 2^53 ms is above every cap")]
    let (initial, cap) = (policy.initial_ms as f64, policy.cap_ms as f64);
    let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
    let wait = (initial * policy.factor.powi(exponent)).min(cap);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 ≤ wait ≤ cap, which is a u64")]
    let wait = wait as u64;
    wait
}

/// Returns when the attempt after `attempt` is due. Full jitter: `random` in `[0, 1)` spreads the wait between 0 and
/// the longest, which keeps the retries of many calls apart better than any narrower jitter. A server's `Retry-After`
/// is a lower bound, even above the policy's cap.
pub fn due(policy: &RetryPolicy, attempt: u32, retry_after_ms: Option<u64>, now: Time, random: f64) -> Time {
    now + ms(spread(longest_wait_ms(policy, attempt), random).max(retry_after_ms.unwrap_or(0)))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "random < 1 keeps the product below span"
)]
fn spread(span: u64, random: f64) -> u64 {
    (span as f64 * random.clamp(0.0, 1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy =
        RetryPolicy { initial_ms: 100, factor: 2.0, cap_ms: 1_000, max_attempts: 10, deadline_ms: 60_000 };

    #[test]
    fn waits_grow_up_to_the_cap() {
        let waits: Vec<_> = [1, 2, 3, 4, 5, 6, u32::MAX].map(|n| longest_wait_ms(&POLICY, n)).into();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000, 1000]);
    }

    #[test]
    fn jitter_is_full_and_retry_after_is_a_lower_bound() {
        let now = Time::default();
        let wait = |attempt, after, random| (due(&POLICY, attempt, after, now, random) - now).num_milliseconds();
        assert_eq!(wait(3, None, 0.0), 0);
        assert_eq!(wait(3, None, 0.5), 200);
        assert_eq!(wait(3, None, 0.999_999), 399);
        assert_eq!(wait(1, Some(5_000), 0.5), 5_000);
        assert_eq!(wait(3, Some(10), 0.5), 200);
    }

    #[test]
    fn extreme_numbers_stay_in_range() {
        let wild = RetryPolicy { initial_ms: u64::MAX, factor: f64::MAX, cap_ms: u64::MAX, ..POLICY };
        assert!(due(&wild, u32::MAX, Some(u64::MAX), Time::default(), 1.0) > Time::default());
    }
}
