//! What is known of the jobs that wait on the stream.

/// How many unclaimed jobs of a tool a consumer has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Depth {
    /// At the last check.
    pub(super) seen: u64,
    /// Of this dispatcher at the last check, and perhaps not seen: on their way, or arrived since the check before.
    pub(super) unseen: u64,
    /// Published since the last check.
    pub(super) published: u64,
    /// On their way to the stream: published, and not arrived.
    pub(super) under_way: u64,
    /// Of those, the ones that have been for [`FORGOTTEN_AFTER`] or longer.
    pub(super) long_under_way: u64,
    /// Arrived since the last check.
    pub(super) arrived: u64,
}

impl Depth {
    pub(super) fn publish(&mut self, count: u64) {
        self.published += count;
        self.under_way += count;
    }

    pub(super) fn arrive(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
        self.long_under_way = self.long_under_way.saturating_sub(1);
        self.arrived += 1;
    }

    pub(super) fn check(&mut self, seen: u64) {
        let unseen = self.under_way + std::mem::take(&mut self.arrived);
        (self.seen, self.unseen, self.published) = (seen, unseen, 0);
    }

    /// Forgets what was under way already the last time: it is not published any more, because a submission failed.
    pub(super) fn forget(&mut self) {
        self.under_way -= self.long_under_way;
        self.long_under_way = self.under_way;
    }

    /// Counts what one dispatcher may publish between two checks.
    pub(super) fn usable(self, window: u64) -> u64 {
        window.saturating_sub(self.seen + self.unseen).div_ceil(2)
    }

    /// Counts all, as far as is known now.
    pub(super) fn all(self) -> u64 {
        self.seen + self.unseen + self.published
    }
}

/// Counts the jobs that are claimed in a time, in seconds.
pub(super) fn jobs_of(capacity: f64, span: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is not negative")]
    let jobs = (capacity * span) as u64;
    jobs
}
