//! All workers register at once, as when they are all started, or when the database is another one. (After a restart of nats-server they
//! only send heartbeats.)
//!
//! Registrations of one identity are judged one after the other, in all dispatchers together. Then the dispatcher looks at all workers, once
//! for all that were judged meanwhile, and tells all dispatchers, which look as well, once for all that they were told meanwhile. A worker
//! that hears nothing for some seconds asks again; the dispatchers do not know that, and answer the first request, too.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use super::{
    inputs as given,
    numbers::{float, micros, whole},
    table::Table,
};
use crate::Random;

/// What is simulated at most, in seconds.
const LONGEST: f64 = 120.0;

/// What came of it.
#[derive(Debug)]
pub(super) struct Storm {
    /// When the last worker was registered, in seconds; `None`: not within [`LONGEST`].
    pub(super) done: Option<f64>,
    pub(super) registered: u32,
    pub(super) requests: u32,
    /// Those that waited too long for the lock of their identity, or did not find room to wait.
    pub(super) refused: u32,
    pub(super) looks: u32,
    /// Seconds of Postgres for the looks.
    pub(super) busy: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A worker asks.
    Asks(u32),
    /// Whoever holds the lock has been judged.
    Judged,
    /// A dispatcher has looked.
    Looked(usize),
}

/// A request of a worker.
#[derive(Clone, Copy)]
struct Asked {
    worker: u32,
    /// In µs.
    at: u64,
    dispatcher: usize,
}

/// Whoever wants a look.
#[derive(Clone, Copy)]
enum Reason {
    /// A request.
    Request(Asked),
    /// The loop that was told of a change.
    Told,
}

#[derive(Default)]
struct Dispatcher {
    waiting: Vec<Reason>,
    /// Of the look that goes on; empty if there is none.
    looks_for: Vec<Reason>,
    /// Requests that are not answered.
    held: u32,
}

struct Simulation {
    dispatchers: Vec<Dispatcher>,
    /// Requests that wait for the lock; the first one holds it.
    lock: VecDeque<Asked>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    registered: Vec<bool>,
    looking: u32,
    storm: Storm,
    /// µs of one look by itself.
    look: f64,
    random: Random,
}

/// Plays such a storm. All workers have one identity.
pub(super) fn storm(dispatchers: u32, workers: u32) -> Storm {
    let mut simulation = Simulation {
        dispatchers: (0..dispatchers).map(|_| Dispatcher::default()).collect(),
        lock: VecDeque::new(),
        events: BinaryHeap::new(),
        registered: vec![false; workers as usize],
        looking: 0,
        storm: Storm { done: None, registered: 0, requests: 0, refused: 0, looks: 0, busy: 0.0 },
        look: f64::from(workers) * given::LOOKED_UP.value * 1e6 + given::STATEMENT.value * 2e6,
        random: Random::new(1),
    };
    for worker in 0..workers {
        let at = simulation.random.below(micros(given::RECONNECT.value) as u32);
        simulation.events.push(Reverse((at.into(), Event::Asks(worker))));
    }
    simulation.run();
    simulation.storm
}

impl Simulation {
    fn run(&mut self) {
        while let Some(Reverse((now, event))) = self.events.pop() {
            if now > micros(LONGEST) || self.storm.done.is_some() {
                return;
            }
            match event {
                Event::Asks(worker) if !self.registered[worker as usize] => self.ask(worker, now),
                Event::Asks(_) => {}
                Event::Judged => self.judged(now),
                Event::Looked(dispatcher) => self.looked(dispatcher, now),
            }
        }
    }

    /// Asks any dispatcher, and again if it does not answer in time.
    fn ask(&mut self, worker: u32, now: u64) {
        self.storm.requests += 1;
        let dispatcher = self.random.below(self.dispatchers.len() as u32) as usize;
        let pause = u64::from(self.random.below(micros(given::PAUSE.value) as u32));
        let one = &mut self.dispatchers[dispatcher];
        if f64::from(one.held) >= given::REQUESTS.value {
            self.storm.refused += 1;
            self.events.push(Reverse((now + pause, Event::Asks(worker))));
            return;
        }
        one.held += 1;
        self.events.push(Reverse((now + micros(given::PATIENCE.value) + pause, Event::Asks(worker))));
        self.lock.push_back(Asked { worker, at: now, dispatcher });
        if self.lock.len() == 1 {
            self.events.push(Reverse((now + micros(given::JUDGED.value), Event::Judged)));
        }
    }

    /// The lock goes on to the next one that did not wait too long.
    fn judged(&mut self, now: u64) {
        let Some(asked) = self.lock.pop_front() else { return };
        while let Some(next) = self.lock.front().copied() {
            if now - next.at <= micros(given::LOCK_TIMEOUT.value) {
                self.events.push(Reverse((now + micros(given::JUDGED.value), Event::Judged)));
                break;
            }
            self.lock.pop_front();
            self.dispatchers[next.dispatcher].held -= 1;
            self.storm.refused += 1;
        }
        self.dispatchers[asked.dispatcher].waiting.push(Reason::Request(asked));
        self.begin(asked.dispatcher, now);
    }

    /// Begins a look for all reasons that there are, if none goes on.
    fn begin(&mut self, dispatcher: usize, now: u64) {
        let one = &mut self.dispatchers[dispatcher];
        if !one.looks_for.is_empty() || one.waiting.is_empty() {
            return;
        }
        one.looks_for = std::mem::take(&mut one.waiting);
        self.looking += 1;
        self.storm.looks += 1;
        self.storm.busy += self.look / 1e6;
        // Looks share the cores of Postgres.
        let slower = (f64::from(self.looking) / given::CORES.value).max(1.0);
        self.events.push(Reverse((now + whole(self.look * slower).max(1), Event::Looked(dispatcher))));
    }

    fn looked(&mut self, dispatcher: usize, now: u64) {
        self.looking -= 1;
        let reasons = std::mem::take(&mut self.dispatchers[dispatcher].looks_for);
        let mut tells = false;
        for reason in reasons {
            if let Reason::Request(asked) = reason {
                self.dispatchers[dispatcher].held -= 1;
                self.answer(asked, now);
                tells = true;
            }
        }
        for told in (0..self.dispatchers.len()).filter(|_| tells) {
            self.tell(told);
            self.begin(told, now);
        }
        self.begin(dispatcher, now);
    }

    fn answer(&mut self, Asked { worker, at, .. }: Asked, now: u64) {
        let is_in_time = now - at <= micros(given::PATIENCE.value);
        if is_in_time && !std::mem::replace(&mut self.registered[worker as usize], true) {
            self.storm.registered += 1;
            if self.storm.registered as usize == self.registered.len() {
                self.storm.done = Some(float(now) / 1e6);
            }
        }
    }

    /// A dispatcher's loop waits for its turn once.
    fn tell(&mut self, dispatcher: usize) {
        let waiting = &mut self.dispatchers[dispatcher].waiting;
        if !waiting.iter().any(|reason| matches!(reason, Reason::Told)) {
            waiting.push(Reason::Told);
        }
    }
}

pub(super) fn table() -> Table {
    let title = "(c) all workers of one identity register at once, within 3 s; 120 s are simulated at most";
    let columns = vec![
        "dispatchers",
        "workers",
        "registered",
        "all after s",
        "requests",
        "refused",
        "looks",
        "s of Postgres for looks",
    ];
    let mut table = Table::new(title, columns);
    for dispatchers in [1, 3, 10, 100] {
        for workers in [100, 1_000, 2_000, 5_000, 10_000] {
            let storm = storm(dispatchers, workers);
            table.add(vec![
                dispatchers.into(),
                workers.into(),
                storm.registered.into(),
                storm.done.map_or_else(|| "never".into(), Into::into),
                storm.requests.into(),
                storm.refused.into(),
                storm.looks.into(),
                storm.busy.into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_workers_are_registered_at_once() {
        let storm = storm(1, 100);
        assert_eq!((storm.registered, storm.requests), (100, 100));
        assert!(storm.done.is_some_and(|at| at < 4.0), "{storm:?}");
    }

    #[test]
    fn one_look_is_for_all_that_registered_meanwhile() {
        for dispatchers in [1, 3] {
            let storm = storm(dispatchers, 1_000);
            assert_eq!(storm.registered, 1_000);
            assert!(storm.looks < 1_000 * (1 + dispatchers), "{storm:?}");
        }
    }

    #[test]
    fn ten_thousand_take_as_long_as_the_lock_of_their_identity() {
        let storm = storm(1, 10_000);
        let judging = 10_000.0 * given::JUDGED.value;
        assert!(storm.done.is_some_and(|at| at < 1.1 * judging + given::PATIENCE.value), "{storm:?}");
        assert!(
            storm.requests > storm.registered,
            "those that nobody waits for any more are worked on, too: {storm:?}"
        );
    }
}
