//! The least rate at which what is large is transferred: whoever is slower holds a place for which others wait.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Over which time the rate is measured. It does not count before this time has passed once.
const OVER: Duration = Duration::from_secs(10);
/// Bytes within that time: 64 KiB a second.
const LEAST: usize = 10 * 64 * 1024;
pub(crate) const IN_WORDS: &str = "64 KiB/s over 10 s";

#[derive(Debug)]
pub(crate) struct LeastRate {
    until: Instant,
    /// Bytes that have to come until then.
    left: usize,
}

impl LeastRate {
    pub(crate) fn begin() -> Self {
        Self { until: Instant::now() + OVER, left: 0 }
    }

    /// Returns when it has to be looked at.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    pub(crate) const fn add(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Returns false if too few bytes were transferred, once that time is there.
    pub(crate) fn holds(&mut self) -> bool {
        let now = Instant::now();
        if now < self.until {
            return true;
        }
        let is_enough = self.left == 0;
        // From now on: this process may have been stopped for a while.
        (self.until, self.left) = (now + OVER, LEAST);
        is_enough
    }
}

/// The rate of the large answer that a connection sends, if it sends one. Clones are of the same connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace(Arc<Mutex<Option<LeastRate>>>);

/// A large answer is being sent, until this is dropped.
pub(crate) struct Paced(Pace);

impl Pace {
    pub(crate) fn begin(&self) -> Paced {
        *self.0.lock() = Some(LeastRate::begin());
        Paced(self.clone())
    }

    /// Returns [`LeastRate::until`]; `None` if no large answer is sent.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.0.lock().as_ref().map(LeastRate::until)
    }

    pub(crate) fn add(&self, bytes: usize) {
        if let Some(rate) = &mut *self.0.lock() {
            rate.add(bytes);
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.0.lock().as_mut().is_none_or(LeastRate::holds)
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}
