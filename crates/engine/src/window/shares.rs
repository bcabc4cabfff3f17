//! What each tenant gets of a tool.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::Duration,
};

use redial_records::Backlog;

use super::round::{OfKind, OfTenant};

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
    first_attempts: BTreeSet<String>,
    /// Tenants whose retries wait.
    retries: BTreeSet<String>,
    /// Jobs that were published within about the last second, by tenant.
    recent: HashMap<String, f64>,
    /// The number of the last turn of each kind, by tenant.
    turns: HashMap<String, BTreeMap<Backlog, u64>>,
}

impl Shares {
    pub(super) fn nobody_waits(&mut self) {
        self.first_attempts.clear();
        self.retries.clear();
    }

    pub(super) fn wait(&mut self, tenant: &str, backlog: Backlog) {
        let waiting = if backlog.is_retry() { &mut self.retries } else { &mut self.first_attempts };
        if !waiting.contains(tenant) {
            waiting.insert(tenant.to_owned());
        }
    }

    /// True if a first attempt waits.
    pub(super) fn someone_waits(&self) -> bool {
        !self.first_attempts.is_empty()
    }

    /// True if a new call of this tenant goes before what waits: no first attempt of its own does, and it got less than
    /// one of the tenants with calls that wait.
    pub(super) fn goes_ahead(&self, tenant: &str) -> bool {
        let recent = |tenant: &str| self.recent.get(tenant).copied().unwrap_or(0.0);
        let mut waiting = self.first_attempts.iter().chain(&self.retries);
        !self.first_attempts.contains(tenant) && waiting.any(|other| recent(tenant) < recent(other))
    }

    /// Returns the tenants that wait, and what of theirs does: those first that have waited longest for a turn.
    pub(super) fn in_turn(&self) -> VecDeque<OfTenant> {
        let mut tenants: Vec<&String> = self.first_attempts.union(&self.retries).collect();
        tenants.sort_by_key(|tenant| self.last_turn(tenant));
        let of_tenant = |tenant: &String| OfTenant { tenant: tenant.clone(), got: 0, kinds: self.kinds(tenant) };
        tenants.into_iter().map(of_tenant).collect()
    }

    fn kinds(&self, tenant: &str) -> VecDeque<OfKind> {
        let turns = self.turns.get(tenant);
        let kind = |(waiting, backlog): (&BTreeSet<String>, Backlog)| {
            let turn = turns.and_then(|turns| turns.get(&backlog)).copied().unwrap_or(0);
            waiting.contains(tenant).then_some(OfKind { backlog, turn, got: 0 })
        };
        let waiting = [(&self.retries, Backlog::Retry), (&self.first_attempts, Backlog::Job)];
        let mut kinds: Vec<OfKind> = waiting.into_iter().filter_map(kind).collect();
        kinds.sort_by_key(|kind| kind.turn);
        kinds.into()
    }

    fn last_turn(&self, tenant: &str) -> u64 {
        self.turns.get(tenant).and_then(|turns| turns.values().max()).copied().unwrap_or(0)
    }

    pub(super) fn has_turn(&mut self, backlog: Backlog, tenant: &str, number: u64) {
        self.turns.entry(tenant.to_owned()).or_default().insert(backlog, number);
    }

    /// Forgets turns that do not matter any more: those that were before the last ones of all tenants that wait.
    pub(super) fn forget_turns(&mut self) {
        let waiting = self.first_attempts.union(&self.retries);
        let oldest = waiting.map(|tenant| self.last_turn(tenant)).min().unwrap_or(u64::MAX);
        let Self { first_attempts, retries, turns, .. } = self;
        turns.retain(|tenant, turns| {
            let waits = first_attempts.contains(tenant) || retries.contains(tenant);
            waits || turns.values().any(|turn| *turn > oldest)
        });
    }

    pub(super) fn published(&mut self, tenant: &str, count: u64) {
        #[expect(clippy::cast_precision_loss, reason = "jobs of a second are far below 2^53")]
        let count = count as f64;
        match self.recent.get_mut(tenant) {
            Some(recent) => *recent += count,
            None => drop(self.recent.insert(tenant.to_owned(), count)),
        }
    }

    /// Fades what was published lately. `weight`: the part of it that is forgotten.
    pub(super) fn fade(&mut self, weight: f64) {
        self.recent.retain(|_, recent| {
            *recent *= 1.0 - weight;
            *recent >= NOTHING
        });
    }
}
