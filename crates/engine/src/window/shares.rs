//! What each tenant gets of a tool.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use redial_records::Backlog;

/// A tenant counts as active for so long after its last call.
const ACTIVE_FOR: Duration = Duration::from_hours(1);
/// So many tenants are told apart; credentials name them, so that more of them are not real.
const MOST: usize = 10_000;
/// Less than this of a job is forgotten.
const NOTHING: f64 = 0.01;

/// The tenants that have submitted calls lately, and when.
#[derive(Debug, Default)]
pub(super) struct Tenants {
    seen: HashMap<String, Duration>,
    /// Several are declared.
    expected: bool,
}

impl Tenants {
    pub(super) fn note(&mut self, tenant: &str, now: Duration) {
        if let Some(seen) = self.seen.get_mut(tenant) {
            *seen = now;
        } else if self.seen.len() < MOST {
            self.seen.insert(tenant.to_owned(), now);
        }
    }

    pub(super) fn forget(&mut self, now: Duration) {
        self.seen.retain(|_, seen| now.saturating_sub(*seen) < ACTIVE_FOR);
    }

    pub(super) fn are_several(&self) -> bool {
        self.expected || self.seen.len() > 1
    }

    pub(super) fn expect_several(&mut self, several: bool) {
        self.expected = several;
    }
}

/// Whose calls of a tool wait, and whose are published.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// Tenants whose first attempts wait, so that nothing new of theirs is published before them.
    waiting: BTreeSet<String>,
    /// Jobs that were published within about the last second, by tenant.
    recent: HashMap<String, f64>,
    /// Who was fed last.
    fed_last: BTreeMap<Backlog, String>,
}

impl Shares {
    pub(super) fn nobody_waits(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn wait(&mut self, tenant: &str) {
        if !self.waiting.contains(tenant) {
            self.waiting.insert(tenant.to_owned());
        }
    }

    pub(super) fn someone_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a new call of this tenant goes before those that wait: none of them is its own, and it got less than one of the
    /// tenants that wait.
    pub(super) fn goes_ahead(&self, tenant: &str) -> bool {
        let recent = |tenant: &str| self.recent.get(tenant).copied().unwrap_or(0.0);
        !self.waiting.contains(tenant) && self.waiting.iter().any(|other| recent(tenant) < recent(other))
    }

    pub(super) fn published(&mut self, tenant: &str, count: u64) {
        #[expect(clippy::cast_precision_loss, reason = "jobs of a second are far below 2^53")]
        let count = count as f64;
        match self.recent.get_mut(tenant) {
            Some(recent) => *recent += count,
            None => drop(self.recent.insert(tenant.to_owned(), count)),
        }
    }

    /// Whether the tenant had its turn before the one who had it last, or is that one.
    pub(super) fn had_turn(&self, backlog: Backlog, tenant: &str) -> bool {
        self.fed_last.get(&backlog).is_some_and(|last| tenant <= last.as_str())
    }

    pub(super) fn has_turn(&mut self, backlog: Backlog, tenant: &str) {
        self.fed_last.insert(backlog, tenant.to_owned());
    }

    /// `weight`: the part of what was published lately that is forgotten.
    pub(super) fn fade(&mut self, weight: f64) {
        self.recent.retain(|_, recent| {
            *recent *= 1.0 - weight;
            *recent >= NOTHING
        });
    }
}
