//! All dispatchers sweep over the same due calls: each asks when the next one is due, and wakes up then.
//!
//! One of them locks it. The others skip it, ask again when the next one is due, are told that this one is overdue until its
//! transaction has ended, and look again after a short pause.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use redial_engine::{outage, retry};
use redial_proto::RetryPolicy;
use redial_records::Time;

use super::{
    inputs as given,
    numbers::{float, micros, whole},
    table::Table,
};
use crate::Random;

/// What is simulated, in µs.
const SPAN: u64 = 10_000_000;

/// What ten seconds cost.
#[derive(Debug, Default)]
pub(super) struct Herd {
    pub(super) sweeps: u64,
    pub(super) empty: u64,
    pub(super) statements: u64,
    pub(super) swept: u64,
    /// Sum of the times from due to committed, in µs.
    delay: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A sweeper looks for due calls and locks them.
    Looks(usize),
    /// It has written what it locked.
    Commits(usize),
    /// It asks when the next call is due.
    Asks(usize),
}

struct Simulation {
    /// Due calls that are not committed, by time and number: the sweeper that locked it.
    due: BTreeMap<(u64, u32), Option<usize>>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    herd: Herd,
}

/// `failing` attempts per second fail for the first time; their retries are due when the engine says, by the usual policy.
pub(super) fn herd(dispatchers: u32, failing: u32) -> Herd {
    let (mut random, policy, start) = (Random::new(7), RetryPolicy::default(), Time::UNIX_EPOCH);
    let mut due = BTreeMap::new();
    for number in 0..failing * 10 {
        let failed = random.below(SPAN as u32);
        let part = f64::from(random.below(1_000_000)) / 1e6;
        let wait = (retry::due(&policy, 1, None, start, part) - start).num_milliseconds();
        due.insert((u64::from(failed) + wait.unsigned_abs() * 1_000, number), None);
    }
    let mut simulation = Simulation { due, events: BinaryHeap::new(), herd: Herd::default() };
    for sweeper in 0..dispatchers {
        // They were started at different times.
        let at = random.below(outage::INTERVAL.as_micros() as u32);
        simulation.events.push(Reverse((at.into(), Event::Looks(sweeper as usize))));
    }
    simulation.run();
    simulation.herd
}

impl Simulation {
    fn run(&mut self) {
        while let Some(Reverse((now, event))) = self.events.pop().filter(|Reverse((now, _))| *now < SPAN) {
            let (at, next) = match event {
                Event::Looks(sweeper) => self.look(sweeper, now),
                Event::Commits(sweeper) => self.commit(sweeper, now),
                Event::Asks(sweeper) => self.ask(sweeper, now),
            };
            self.events.push(Reverse((at, next)));
        }
    }

    /// BEGIN and the look; then what is found is written and committed, or nothing is.
    fn look(&mut self, sweeper: usize, now: u64) -> (u64, Event) {
        let most = whole(given::DUE.value) as usize;
        let mut locked = 0;
        for by in self.due.range_mut(..=(now, u32::MAX)).map(|(_, by)| by).filter(|by| by.is_none()).take(most) {
            *by = Some(sweeper);
            locked += 1;
        }
        self.herd.sweeps += 1;
        if locked == 0 {
            self.herd.empty += 1;
            self.herd.statements += 3;
            return (now + 3 * micros(given::STATEMENT.value), Event::Asks(sweeper));
        }
        self.herd.statements += 4;
        (now + 2 * micros(given::STATEMENT.value) + micros(given::COMMIT.value), Event::Commits(sweeper))
    }

    fn commit(&mut self, sweeper: usize, now: u64) -> (u64, Event) {
        let herd = &mut self.herd;
        self.due.retain(|(at, _), by| {
            let written = *by == Some(sweeper);
            if written {
                herd.swept += 1;
                herd.delay += now - at;
            }
            !written
        });
        (now + micros(given::STATEMENT.value), Event::Asks(sweeper))
    }

    fn ask(&mut self, sweeper: usize, now: u64) -> (u64, Event) {
        self.herd.statements += 1;
        let longest = micros(outage::INTERVAL.as_secs_f64());
        let pause = self.due.keys().next().map_or(longest, |(at, _)| {
            if *at < now { micros(given::SHORTEST_PAUSE.value) } else { (at - now).min(longest) }
        });
        (now + pause, Event::Looks(sweeper))
    }
}

pub(super) fn table() -> Table {
    let title = "(g) sweeps over due calls: per second, for retries by the usual policy (the engine's retry times)";
    let columns = vec![
        "dispatchers",
        "retries",
        "sweeps",
        "found nothing %",
        "statements",
        "statements for a retry",
        "ms late",
        "cores",
    ];
    let mut table = Table::new(title, columns);
    for dispatchers in [1, 3, 10, 100] {
        for failing in [1, 10, 100, 1_000] {
            let herd = herd(dispatchers, failing);
            let (seconds, swept) = (float(SPAN) / 1e6, float(herd.swept).max(1.0));
            table.add(vec![
                dispatchers.into(),
                failing.into(),
                (float(herd.sweeps) / seconds).into(),
                (100.0 * float(herd.empty) / float(herd.sweeps)).into(),
                (float(herd.statements) / seconds).into(),
                (float(herd.statements) / swept).into(),
                (float(herd.delay) / swept / 1_000.0).into(),
                (float(herd.statements) / seconds * given::READ.value).into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_due_call_is_swept_once_whoever_sweeps() {
        let (one, many) = (herd(1, 50), herd(20, 50));
        // Some are due after the end.
        assert!(one.swept > 450 && one.swept.abs_diff(many.swept) < 10, "{one:?} {many:?}");
        assert!(many.statements > 5 * one.statements, "{one:?} {many:?}");
    }
}
