//! How far the parts of the backlog are read.
//!
//! Each look at a part begins at its mark: while somebody holds an old snapshot, what was taken from the backlog stays in its
//! index, and a look from the beginning walks over all of it. What others put before a mark, and whom this dispatcher does not know
//! of, is searched for beside the rounds.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    iter,
    time::Instant,
};

use redial_records::{Backlog, BacklogPart, Time};
use redial_store::{Gap, Mark, Position};

/// How far the parts of the backlog are read.
#[derive(Default)]
pub(super) struct Positions {
    /// The parts that may hold something.
    marks: HashMap<BacklogPart, Mark>,
    /// Something came into these parts since the marks were read.
    touched: HashSet<BacklogPart>,
    /// The last call that was taken of each part since the last look at it.
    taken: HashMap<BacklogPart, Time>,
    /// Up to where other tenants of a tool were searched for. What this dispatcher puts into the backlog itself, it knows of.
    searched: HashMap<String, Mark>,
    /// Makes the next search begin no later than at the beginning.
    whole: bool,
}

/// Where calls may wait that are not known of.
pub(crate) struct Search {
    /// Of other tenants.
    pub(crate) gaps: Vec<Gap>,
    /// Before the marks.
    pub(crate) parts: Vec<Position>,
    pub(super) began: Instant,
    is_whole: bool,
}

impl Positions {
    /// Takes note that a call waits. `since`: its position, if it may be before the mark.
    pub(super) fn wake(&mut self, part: BacklogPart, since: Option<Time>) {
        let searched = self.searched.get(&part.tool).copied().unwrap_or_default();
        let mark = self.marks.entry(part.clone()).or_insert(searched);
        if since.is_some_and(|since| mark.lower(since)) {
            // What was taken before says nothing of what lies before it now.
            self.taken.remove(&part);
        }
        self.touched.insert(part);
    }

    /// Returns the parts of these tools, and where a look at them begins.
    pub(super) fn read(&mut self, is_served: impl Fn(&str) -> bool, at: Instant) -> Vec<Position> {
        self.touched.clear();
        let served = self.marks.iter().filter(|(part, _)| is_served(&part.tool));
        served.map(|(part, mark)| Position { part: part.clone(), since: mark.begin(at) }).collect()
    }

    /// Takes note of what waits, by a look that began then; forgets the asked parts in which nothing does.
    pub(super) fn looked(&mut self, asked: &[Position], waiting: &[Position], at: Instant) {
        let lowest: HashMap<&BacklogPart, Option<Time>> = waiting.iter().map(|one| (&one.part, one.since)).collect();
        for part in asked.iter().map(|one| &one.part).filter(|part| !self.touched.contains(part)) {
            match lowest.get(part).copied().flatten() {
                None => {
                    self.marks.remove(part);
                    self.taken.remove(part);
                }
                Some(lowest) => {
                    let (mark, taken) = (self.marks.entry(part.clone()).or_default(), self.taken.remove(part));
                    // What is the first again although calls behind it were taken is locked. While it is, looks begin behind it; the
                    // search finds it.
                    let behind = taken.filter(|taken| mark.is_at(lowest) && *taken > lowest);
                    let begin = behind.unwrap_or(lowest);
                    mark.found(Some(begin), begin, at);
                }
            }
        }
    }

    pub(super) fn taken(&mut self, part: &BacklogPart, until: Time) {
        self.taken.insert(part.clone(), until);
    }

    /// Makes the next search go over everything.
    pub(super) fn search_all(&mut self) {
        self.whole = true;
    }

    pub(super) fn search(&mut self, served: &BTreeSet<&str>, at: Instant) -> Search {
        let is_whole = std::mem::take(&mut self.whole);
        if is_whole {
            // When workers have the others, they are searched for.
            self.marks.retain(|part, _| served.contains(part.tool.as_str()));
            self.searched.clear();
            self.taken.clear();
        }
        self.searched.retain(|tool, _| served.contains(tool.as_str()));
        let known = self.marks.keys().filter(|_| is_whole);
        let parts = known.map(|part| Position { part: part.clone(), since: None }).collect();
        Search { gaps: self.gaps(served, at), parts, began: at, is_whole }
    }

    /// Returns the gaps between the tenants that are known.
    fn gaps(&self, served: &BTreeSet<&str>, at: Instant) -> Vec<Gap> {
        let mut tenants = BTreeMap::<(&str, Backlog), BTreeSet<&str>>::new();
        for tool in served {
            tenants.extend(Backlog::ALL.map(|backlog| ((*tool, backlog), BTreeSet::new())));
        }
        for part in self.marks.keys() {
            if let Some(tenants) = tenants.get_mut(&(part.tool.as_str(), part.backlog)) {
                tenants.insert(&part.tenant);
            }
        }
        let gaps = tenants.into_iter().flat_map(|((tool, backlog), tenants)| {
            let since = self.searched.get(tool).and_then(|mark| mark.begin(at));
            let after: Vec<&str> = iter::once("").chain(tenants.iter().copied()).collect();
            let before = tenants.into_iter().map(|tenant| Some(tenant.to_owned())).chain([None]);
            let gap = |(after, before): (&str, _)| {
                let (tool, after) = (tool.to_owned(), after.to_owned());
                Gap { tool, backlog, after, before, since }
            };
            after.into_iter().zip(before).map(gap).collect::<Vec<_>>()
        });
        gaps.collect()
    }

    /// Takes note of what a search found. True if it was not known of.
    pub(super) fn found(&mut self, found: Vec<Position>) -> bool {
        let mut is_new = false;
        for Position { part, since } in found {
            let Some(since) = since else { continue };
            let news = match self.marks.get_mut(&part) {
                Some(mark) => mark.lower(since),
                None => self.marks.insert(part.clone(), Mark::new(since)).is_none(),
            };
            if news {
                self.taken.remove(&part);
                self.touched.insert(part);
            }
            is_new |= news;
        }
        is_new
    }

    /// Ends a search, which began at this time of the database; `None` if it failed.
    pub(super) fn searched(&mut self, search: &Search, began: Option<Time>) {
        match began {
            None => self.whole |= search.is_whole,
            Some(now) => {
                for gap in &search.gaps {
                    self.searched.entry(gap.tool.clone()).or_default().found(None, now, search.began);
                }
            }
        }
    }
}
