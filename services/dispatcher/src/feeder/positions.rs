//! How far the parts of the backlog are read.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    iter,
};

use chrono::TimeDelta;
use redial_records::{Backlog, BacklogPart, Time};
use redial_store::{Gap, Position};

/// A call may become visible so long after the time that is its position: its transaction was still open.
const LATE_COMMIT: TimeDelta = TimeDelta::seconds(2);
/// Nothing is before this.
const BEGINNING: Time = Time::UNIX_EPOCH;

/// How far the parts of the backlog are read.
#[derive(Default)]
pub(super) struct Positions {
    /// The parts that may hold something, and from where on: nothing before that waits, as far as is known.
    since: HashMap<BacklogPart, Time>,
    /// Calls may be before all others in these parts since the positions were read: they came back, or were not known of.
    came_back: HashSet<BacklogPart>,
    /// Tenants may wait that are not known of.
    unsearched: bool,
}

impl Positions {
    /// A call waits. `came_back`: it is perhaps before all others.
    pub(super) fn wake(&mut self, part: BacklogPart, came_back: bool) {
        if came_back {
            self.since.insert(part.clone(), BEGINNING);
            self.came_back.insert(part);
        } else {
            self.since.entry(part).or_insert(BEGINNING);
        }
    }

    /// The parts of these tools, in their order, to look at from there on.
    pub(super) fn read(&mut self, is_served: impl Fn(&str) -> bool) -> Vec<Position> {
        self.came_back.clear();
        let served = self.since.iter().filter(|(part, _)| is_served(&part.tool));
        let mut positions: Vec<_> =
            served.map(|(part, since)| Position { part: part.clone(), since: *since }).collect();
        positions.sort_unstable_by(|one, other| one.part.cmp(&other.part));
        positions
    }

    pub(super) fn is_unsearched(&self) -> bool {
        self.unsearched
    }

    /// Where tenants may wait for these tools that are not known of.
    pub(super) fn gaps<'a>(&mut self, served: impl Iterator<Item = &'a str>) -> Vec<Gap> {
        self.unsearched = false;
        let mut tenants = BTreeMap::<(&str, Backlog), BTreeSet<&str>>::new();
        for tool in served {
            tenants.extend(Backlog::ALL.map(|backlog| ((tool, backlog), BTreeSet::new())));
        }
        for part in self.since.keys() {
            if let Some(tenants) = tenants.get_mut(&(part.tool.as_str(), part.backlog)) {
                tenants.insert(&part.tenant);
            }
        }
        let gaps = tenants.into_iter().flat_map(|((tool, backlog), tenants)| {
            let after: Vec<&str> = iter::once("").chain(tenants.iter().copied()).collect();
            let before = tenants.into_iter().map(|tenant| Some(tenant.to_owned())).chain([None]);
            let gap =
                |(after, before): (&str, _)| Gap { tool: tool.to_owned(), backlog, after: after.to_owned(), before };
            after.into_iter().zip(before).map(gap).collect::<Vec<_>>()
        });
        gaps.collect()
    }

    /// These parts hold something.
    pub(super) fn found(&mut self, parts: Vec<BacklogPart>) {
        for part in parts {
            self.since.entry(part).or_insert(BEGINNING);
        }
    }

    /// Takes note of what waits, of what was asked for: where nothing does from the beginning on, nobody need look again.
    pub(super) fn looked(&mut self, asked: Vec<Position>, waiting: &[Position]) {
        for Position { part, since } in asked {
            let is_empty = since == BEGINNING && find(waiting, &part).is_none();
            if is_empty && !self.came_back.contains(&part) {
                self.since.remove(&part);
            }
        }
    }

    /// Nothing waits before this position any more.
    pub(super) fn fed(&mut self, part: &BacklogPart, until: Time) {
        if let Some(since) = self.since.get_mut(part).filter(|_| !self.came_back.contains(part)) {
            *since = until;
        }
    }

    /// Calls may wait a little before the known positions: those whose transactions ended late.
    pub(super) fn step_back(&mut self) {
        for since in self.since.values_mut().filter(|since| **since != BEGINNING) {
            *since -= LATE_COMMIT;
        }
    }

    /// Calls may wait before the known positions, and of tenants that are not known of.
    pub(super) fn go_back(&mut self, is_served: impl Fn(&str) -> bool) {
        // When workers have the others, they are searched for.
        self.since.retain(|part, _| is_served(&part.tool));
        self.since.values_mut().for_each(|since| *since = BEGINNING);
        self.came_back.extend(self.since.keys().cloned());
        self.unsearched = true;
    }
}

/// What waits in a part; the positions are in the order of their parts.
pub(crate) fn find<'a>(waiting: &'a [Position], part: &BacklogPart) -> Option<&'a Position> {
    waiting.binary_search_by(|one| one.part.cmp(part)).ok().and_then(|found| waiting.get(found))
}
