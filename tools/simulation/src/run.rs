//! Plays many histories on several threads, and shrinks one that violates an invariant.

use std::{
    fmt,
    num::NonZero,
    sync::atomic::{AtomicU64, Ordering},
    thread::available_parallelism,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use redial_proto::{CallState, TaskState};

use crate::{Invariant, Mutation, Plan, Violation, size_of, world::World};

/// Which histories to play.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The first seed; the others count up from it.
    pub seed: u64,
    pub histories: u64,
    /// The mutation to switch on.
    pub mutation: Option<Mutation>,
}

/// Number of histories that a thread takes at a time.
const CHUNK: u64 = 256;

/// Counts of one history, or of all of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Histories that held.
    pub histories: u64,
    /// Those with tasks.
    pub with_tasks: u64,
    /// Those with a calm network.
    pub calm: u64,
    /// Events in all of them together.
    pub steps: u64,
    /// Attempts on record.
    pub attempts: u64,
    /// Calls by state, in the order of [`CallState::ALL`].
    pub calls: [u64; CallState::ALL.len()],
    /// Tasks by state, in the order of [`TaskState::ALL`].
    pub tasks: [u64; TaskState::ALL.len()],
    pub took: Duration,
}

/// A plan that violates an invariant.
#[derive(Clone, Debug)]
pub struct Failed {
    pub seed: u64,
    pub violation: Violation,
    /// The shortest plan found that violates the same invariant.
    pub shortest: Plan,
    pub log: Vec<String>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, violation, log, .. } = self;
        writeln!(f, "seed {seed}: {violation}")?;
        writeln!(f, "the shortest history found that violates the same invariant:")?;
        log.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Plays a run on all cores; stops at a plan that violates an invariant, and shrinks it.
pub fn play(run: &Run) -> Result<Tally, Box<Failed>> {
    let began = Instant::now();
    let (next, found) = (AtomicU64::new(0), Mutex::new(None));
    let cores = available_parallelism().map_or(2, NonZero::get);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(|| thread(run, &next, &found))).collect();
        let resume = |panic| std::panic::resume_unwind(panic);
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(resume)).collect()
    });
    if let Some((seed, violation)) = found.into_inner() {
        let shortest = shrink(&Plan::new(seed, size_of(seed)), run.mutation, violation.invariant);
        let log = describe(&shortest, run.mutation);
        return Err(Box::new(Failed { seed, violation, shortest, log }));
    }
    let mut tally = Tally::default();
    for one in &tallies {
        tally.join(one);
    }
    tally.took = began.elapsed();
    Ok(tally)
}

/// Plays histories until none are left or one of the threads has found a violation.
fn thread(run: &Run, next: &AtomicU64, found: &Mutex<Option<(u64, Violation)>>) -> Tally {
    let mut tally = Tally::default();
    loop {
        let first = next.fetch_add(CHUNK, Ordering::Relaxed);
        if first >= run.histories {
            return tally;
        }
        for n in first..(first + CHUNK).min(run.histories) {
            let seed = run.seed.wrapping_add(n);
            let plan = Plan::new(seed, size_of(seed));
            match World::new(plan.setup, run.mutation).run(&plan) {
                Ok(one) => tally.join(&one),
                Err(violation) => {
                    next.store(run.histories, Ordering::Relaxed);
                    let mut found = found.lock();
                    // Of several, the lowest seed is kept, so that a run has the same result every time.
                    if found.as_ref().is_none_or(|(other, _)| seed < *other) {
                        *found = Some((seed, violation));
                    }
                    break;
                }
            }
        }
    }
}

/// Returns the log of a history; its last line is the violation, if there is one.
pub fn describe(plan: &Plan, mutation: Option<Mutation>) -> Vec<String> {
    let mut world = World::new(plan.setup, mutation);
    world.log_lines = Some(vec![format!("   {:?}, {} moves", plan.setup, plan.moves.len())]);
    let ended = world.run(plan);
    let mut log = world.log_lines.unwrap_or_default();
    log.push(ended.map_or_else(|violation| format!("   {violation}"), |_| "   everything holds".to_owned()));
    log
}

/// Finds a smaller plan that violates the same invariant: without the moves that are not needed for that.
#[must_use]
fn shrink(plan: &Plan, mutation: Option<Mutation>, invariant: Invariant) -> Plan {
    let violates = |plan: &Plan| {
        let ended = World::new(plan.setup, mutation).run(plan);
        ended.is_err_and(|violation| violation.invariant == invariant)
    };
    let mut best = plan.clone();
    let mut length = best.moves.len();
    while length > 0 {
        let (mut start, before) = (0, best.moves.len());
        while start < best.moves.len() {
            let mut tried = best.clone();
            tried.moves.drain(start..(start + length).min(best.moves.len()));
            if violates(&tried) {
                best = tried;
            } else {
                start += length;
            }
        }
        // Single moves are tried until none of them can go.
        length = if length == 1 && best.moves.len() < before { 1 } else { length / 2 };
    }
    best
}

impl Tally {
    fn join(&mut self, other: &Self) {
        self.histories += other.histories;
        self.with_tasks += other.with_tasks;
        self.calm += other.calm;
        self.steps += other.steps;
        self.attempts += other.attempts;
        add(&mut self.calls, &other.calls);
        add(&mut self.tasks, &other.tasks);
    }
}

fn add(sum: &mut [u64], more: &[u64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { histories, with_tasks, calm, steps, attempts, took, .. } = self;
        let seconds = took.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "only printed")]
        let each = seconds * 1e6 / *histories as f64;
        writeln!(f, "{histories} histories in {seconds:.1} s ({each:.1} µs each): every invariant holds")?;
        writeln!(f, "  with a calm network {calm}, with tasks {with_tasks}")?;
        writeln!(f, "  {steps} steps, {attempts} attempts")?;
        writeln!(f, "  calls: {}", states(&CallState::ALL.map(CallState::as_str), &self.calls))?;
        write!(f, "  tasks: {}", states(&TaskState::ALL.map(TaskState::as_str), &self.tasks))
    }
}

fn states(names: &[&str], counts: &[u64]) -> String {
    let reached = names.iter().zip(counts).filter(|(_, count)| **count > 0);
    reached.map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}
