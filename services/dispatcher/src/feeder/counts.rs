//! What was observed of a tool.

use std::time::Instant;

use redial_engine::health::Observed;

/// Attempts of a tool that ended since that was last written.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) successes: u32,
    pub(super) failures: u32,
    /// Tokens that were taken, and used for no retry.
    pub(super) unused_tokens: u32,
    /// The first failure after its last success, even one that is written already.
    pub(super) failing_since: Option<Instant>,
}

impl Counts {
    pub(super) fn take(&mut self) -> Observed {
        Observed {
            successes: std::mem::take(&mut self.successes),
            failures: std::mem::take(&mut self.failures),
            unused_tokens: std::mem::take(&mut self.unused_tokens),
            failing_for: self.failing_since.map(|since| since.elapsed()),
        }
    }
}
