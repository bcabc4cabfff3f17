//! How long loops wait before they try again: exponential, with jitter, without an end.
//!
//! The only crate that knows the library `backoff`. The durable retries of calls are the engine's arithmetic, not this.

use std::time::Duration;

use backoff::{ExponentialBackoff, ExponentialBackoffBuilder, backoff::Backoff as _, future::retry_notify};

/// Every wait is this part longer or shorter at random, so that many clients do not reconnect at the same time.
const JITTER: f64 = 0.5;

/// Waits that double from the first one up to a cap, each ±50 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    initial: Duration,
    cap: Duration,
}

impl Backoff {
    /// Makes waits from `initial` up to `cap`, both before jitter.
    pub const fn new(initial: Duration, cap: Duration) -> Self {
        Self { initial, cap }
    }

    /// Returns the longest wait that is possible, jitter included.
    pub const fn longest(self) -> Duration {
        match self.cap.checked_div(2) {
            Some(half) => self.cap.saturating_add(half),
            None => self.cap,
        }
    }

    /// Returns the wait after this many failures in a row, from 1; for loops that count their failures anyway.
    pub fn after(self, failures: u32) -> Duration {
        Self { initial: self.doubled(failures), ..self }.waits().next_wait()
    }

    /// Returns the wait without jitter, for code that must not depend on chance.
    pub fn doubled(self, failures: u32) -> Duration {
        self.initial.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(self.cap)
    }

    pub fn waits(self) -> Waits {
        let waits = ExponentialBackoffBuilder::new()
            .with_initial_interval(self.doubled(1))
            .with_max_interval(self.cap)
            .with_multiplier(2.0)
            .with_randomization_factor(JITTER)
            .with_max_elapsed_time(None)
            .build();
        Waits { waits, longest: self.longest() }
    }

    /// Tries until it succeeds or fails with an error that is not transient. Every other error is handed to `on_wait`,
    /// with the wait that follows.
    pub async fn retry<T, E, F: Future<Output = Result<T, E>>>(
        self,
        mut attempt: impl FnMut() -> F,
        is_transient: impl Fn(&E) -> bool,
        on_wait: impl FnMut(E, Duration),
    ) -> Result<T, E> {
        let is_transient = &is_transient;
        let step = |error| {
            if is_transient(&error) { backoff::Error::transient(error) } else { backoff::Error::permanent(error) }
        };
        let operation = || {
            let attempt = attempt();
            async move { attempt.await.map_err(step) }
        };
        retry_notify(self.waits().waits, operation, on_wait).await
    }
}

/// Waits of a [`Backoff`], one after the other.
#[derive(Debug)]
pub struct Waits {
    waits: ExponentialBackoff,
    longest: Duration,
}

impl Waits {
    /// Returns the next wait; there always is one.
    pub fn next_wait(&mut self) -> Duration {
        self.waits.next_backoff().unwrap_or(self.longest).min(self.longest)
    }

    pub fn reset(&mut self) {
        self.waits.reset();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

    #[test]
    fn waits_double_up_to_the_cap_and_never_end() {
        let ranges =
            [(0, 50, 150), (1, 50, 150), (2, 100, 300), (5, 800, 2400), (6, 1000, 3000), (u32::MAX, 1000, 3000)];
        for (failures, shortest, longest) in ranges {
            for _ in 0..100 {
                let wait = BACKOFF.after(failures).as_millis();
                assert!((shortest..=longest).contains(&wait), "{failures} failures: {wait} ms");
            }
        }
        let mut waits = BACKOFF.waits();
        for failures in 1..1000 {
            let (doubled, wait) = (BACKOFF.doubled(failures), waits.next_wait());
            assert!(doubled / 2 <= wait && wait <= BACKOFF.longest(), "{failures} failures: {wait:?}");
        }
        waits.reset();
        assert!(waits.next_wait() < Duration::from_millis(151));
    }

    #[test]
    fn a_cap_below_the_first_wait_holds() {
        let small = Backoff::new(Duration::from_millis(100), Duration::from_millis(10));
        assert!((0..100).all(|failures| small.after(failures) <= Duration::from_millis(15)));
    }

    #[test]
    fn a_thousand_clients_do_not_return_together() {
        let waits: HashSet<_> = (0..1000).map(|_| BACKOFF.after(5).as_micros()).collect();
        assert!(waits.len() > 900);
    }

    #[tokio::test(start_paused = true)]
    async fn only_transient_errors_are_retried() {
        let errors = [Err("busy"), Err("busy"), Ok(3)];
        let (mut tries, mut seen) = (errors.into_iter(), Vec::new());
        let answer = BACKOFF.retry(
            || std::future::ready(tries.next().unwrap_or(Err("gone"))),
            |error| *error == "busy",
            |error, wait| seen.push((error, wait >= Duration::from_millis(50))),
        );
        assert_eq!(answer.await, Ok(3));
        assert_eq!(seen, [("busy", true), ("busy", true)]);
        let refused = BACKOFF.retry(|| std::future::ready(Err::<(), _>("gone")), |error| *error == "busy", |_, _| {});
        assert_eq!(refused.await, Err("gone"));
    }
}
