//! How long connection loops wait: exponential with jitter, for ever.
//!
//! The only module that knows the `backoff` crate, which is no longer maintained; `backon` would replace it. The
//! durable retries of calls are the engine's arithmetic, not this.

use std::time::Duration;

use ::backoff::{ExponentialBackoff, ExponentialBackoffBuilder, backoff::Backoff as _};

pub(crate) use ::backoff::{Error as Step, future::retry_notify};

/// First wait, in ms.
const INITIAL_MS: u64 = 100;
/// Longest wait, in ms, before jitter. Short, because a returning server should be noticed at once.
const CAP_MS: u64 = 2_000;

/// After this long at most a client of this crate has tried to reach a server that is back.
pub const LONGEST_RECONNECT: Duration = Duration::from_millis(CAP_MS * 3 / 2);

/// Waits of about 100, 200, 400 … 2,000 ms, each ±50 %, without an end.
pub(crate) fn delays() -> ExponentialBackoff {
    waits_from(Duration::from_millis(INITIAL_MS))
}

/// The wait before reconnection attempt `attempt` (from 1).
pub(crate) fn reconnect_delay(attempt: usize) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    let wait = (INITIAL_MS << doublings).min(CAP_MS);
    waits_from(Duration::from_millis(wait)).next_backoff().unwrap_or(Duration::from_millis(CAP_MS))
}

fn waits_from(initial: Duration) -> ExponentialBackoff {
    ExponentialBackoffBuilder::new()
        .with_initial_interval(initial)
        .with_max_interval(Duration::from_millis(CAP_MS))
        .with_multiplier(2.0)
        .with_randomization_factor(0.5)
        .with_max_elapsed_time(None)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_never_end() {
        let mut delays = delays();
        for _ in 0..1000 {
            assert!(delays.next_backoff().unwrap() <= Duration::from_millis(CAP_MS * 3 / 2 + 1));
        }
        for (attempt, low, high) in
            [(0, 50, 151), (1, 50, 151), (3, 200, 601), (5, 800, 2401), (usize::MAX, 1000, 3001)]
        {
            for _ in 0..100 {
                let wait = reconnect_delay(attempt).as_millis();
                assert!((low..=high).contains(&wait), "attempt {attempt}: {wait} ms");
            }
        }
    }

    #[test]
    fn a_thousand_clients_do_not_return_together() {
        let waits: std::collections::HashSet<_> = (0..1000).map(|_| reconnect_delay(5).as_micros()).collect();
        assert!(waits.len() > 900);
    }
}
