//! Plays many histories on several threads.

use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use redial_proto::{CallState, TaskState};

use crate::{
    Mutation, Plan, Violation, regressions, shrink, size_of,
    world::{Ended, World},
};

/// Which histories to play.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The first seed; the others count up from it.
    pub seed: u64,
    /// Histories to play.
    pub histories: u64,
    /// Threads to play them on.
    pub threads: usize,
    /// The mutation to switch on.
    pub mutation: Option<Mutation>,
}

/// Number of histories that a thread takes at a time.
const CHUNK: u64 = 256;

/// Counts of a run.
#[derive(Clone, Debug, Default)]
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
    pub calls: [u64; 8],
    /// Tasks by state, in the order of [`TaskState::ALL`].
    pub tasks: [u64; 5],
    /// How long it took.
    pub took: Duration,
}

/// A plan that violates an invariant.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Its seed.
    pub seed: u64,
    /// Its size.
    pub size: u32,
    /// The first violation.
    pub violation: Violation,
    /// The log of the shrunk plan.
    pub log: Vec<String>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, size, violation, log } = self;
        writeln!(f, "seed {seed}, size {size}: {violation}")?;
        writeln!(f, "the shortest history found that violates the same invariant:")?;
        log.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        let fingerprint = Plan::new(*seed, *size).fingerprint();
        writeln!(f, "to keep it, add this line to tools/simulation/regressions.txt:\n{seed} {size} {fingerprint:08x}")
    }
}

/// Plays the kept plans and then a run; stops at the first plan that violates an invariant, and shrinks it.
pub fn play(run: &Run) -> Result<Tally, Box<Failed>> {
    let began = Instant::now();
    let mut tally = Tally::default();
    let mut plan = Plan::empty();
    let mut world = World::new();
    for kept in regressions().unwrap_or_default() {
        plan.fill(kept.seed, kept.size);
        let ended = world.run(&plan, run.mutation);
        tally.add(&plan, &ended.map_err(|violation| Box::new(failed(kept.seed, kept.size, violation, run.mutation)))?);
    }
    let next = AtomicU64::new(0);
    let found = Mutex::new(None);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..run.threads.max(1)).map(|_| scope.spawn(|| thread(run, &next, &found))).collect();
        let resume = |panic| std::panic::resume_unwind(panic);
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(resume)).collect()
    });
    if let Some((seed, violation)) = found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(Box::new(failed(seed, size_of(seed), violation, run.mutation)));
    }
    for one in &tallies {
        tally.join(one);
    }
    tally.steps += world.steps;
    tally.took = began.elapsed();
    Ok(tally)
}

fn failed(seed: u64, size: u32, violation: Violation, mutation: Option<Mutation>) -> Failed {
    let small = shrink(&Plan::new(seed, size), mutation, violation.invariant);
    Failed { seed, size, violation, log: describe(&small, mutation) }
}

/// Plays histories until none are left or one of the threads has found a violation.
fn thread(run: &Run, next: &AtomicU64, found: &Mutex<Option<(u64, Violation)>>) -> Tally {
    let mut tally = Tally::default();
    let mut plan = Plan::empty();
    let mut world = World::new();
    loop {
        let first = next.fetch_add(CHUNK, Ordering::Relaxed);
        if first >= run.histories {
            tally.steps = world.steps;
            return tally;
        }
        for n in first..(first + CHUNK).min(run.histories) {
            let seed = run.seed.wrapping_add(n);
            plan.fill(seed, size_of(seed));
            match world.run(&plan, run.mutation) {
                Ok(ended) => tally.add(&plan, &ended),
                Err(violation) => {
                    next.store(run.histories, Ordering::Relaxed);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The first violation in a run, and the number of histories played until then; plays on one thread, without the kept
/// plans, and does not shrink.
pub fn find(run: &Run) -> Option<(u64, Violation)> {
    let (mut plan, mut world) = (Plan::empty(), World::new());
    (0..run.histories).find_map(|n| {
        let seed = run.seed.wrapping_add(n);
        plan.fill(seed, size_of(seed));
        world.run(&plan, run.mutation).err().map(|violation| (n + 1, violation))
    })
}

/// The log of a history; its last line is the violation, if there is one.
pub fn describe(plan: &Plan, mutation: Option<Mutation>) -> Vec<String> {
    let mut world = World::new();
    let (mut log, ended) = world.run_logged(plan, mutation);
    log.insert(0, format!("   {}, {} moves", plan.setup, plan.moves.len()));
    log.push(match ended {
        Ok(_) => "   everything holds".to_owned(),
        Err(violation) => format!("   {violation}"),
    });
    log
}

impl Tally {
    fn add(&mut self, plan: &Plan, ended: &Ended) {
        self.histories += 1;
        self.with_tasks += u64::from(plan.setup.tasks > 0);
        self.calm += u64::from(plan.setup.calm);
        self.attempts += ended.attempts;
        add(&mut self.calls, &ended.calls);
        add(&mut self.tasks, &ended.tasks);
    }

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
        let calls: Vec<_> = CallState::ALL.map(CallState::as_str).into_iter().zip(self.calls).collect();
        let tasks: Vec<_> = TaskState::ALL.map(TaskState::as_str).into_iter().zip(self.tasks).collect();
        writeln!(f, "  calls: {}", states(&calls))?;
        write!(f, "  tasks: {}", states(&tasks))
    }
}

fn states(counts: &[(&str, u64)]) -> String {
    let reached = counts.iter().filter(|(_, count)| *count > 0);
    reached.map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}
