//! One history: tables, streams, processes and a network, all in memory and by plan.
//!
//! What decides is the engine itself. What surrounds it is modelled as small as its promises: a transaction of Postgres
//! happens whole or not at all, and its guards are those of `crates/store/sql`; NATS loses, doubles, reorders and
//! forgets; workers and dispatchers die anywhere between two steps.

mod acting;
mod advance;
mod check;
mod database;
mod dispatcher;
mod drain;
mod ingest;
mod invent;
mod moves;
mod network;
mod rows;
mod sweep;
mod worker;

use redial_engine::tools::Tools;
use redial_proto::{CallState, ErrorClass, Failure, TaskState};
use redial_records::{CallFacts, Transition};

use self::{
    advance::Decision,
    dispatcher::Dispatcher,
    rows::{Claim, Job, JobMessage, Ledger, Ms, Packet, Process, Report, ResultMessage, Row, Tables, TaskRow},
    worker::Worker,
};
use crate::{Invariant, Mutation, Setup, Violation, plan::Plan};

/// How long a lease holds.
const LEASE: Ms = 15_000;
/// A worker counts its lease as so much shorter.
const MARGIN: Ms = 1_000;
/// The longest time that a process takes to connect again.
const RECONNECT: Ms = 3_000;
/// A message that is not acknowledged is delivered again after this.
const ACK_WAIT: Ms = 30_000;

/// A history under way. One is used for many histories, so that they need little new memory.
pub(crate) struct World {
    setup: Setup,
    mutation: Option<Mutation>,
    now: Ms,
    tables: Tables,
    /// What is safe if Postgres forgets; kept for one mutation only.
    durable: Tables,
    jobs: Vec<JobMessage>,
    results: Vec<ResultMessage>,
    packets: Vec<Packet>,
    /// Everything that was ever published, to come again.
    old_jobs: Vec<Job>,
    old_reports: Vec<Report>,
    /// Message ids that NATS has seen: call, attempt, number of the publication.
    seen: Vec<(Job, u32)>,
    nats_up: bool,
    postgres_up: bool,
    /// Counts the outages of either.
    outages: u32,
    /// Counts the wipes.
    stream: u32,
    /// Counts messages of all streams.
    seq: u32,
    /// The next numbers of processes and claims.
    processes: Process,
    claims: Claim,
    dispatchers: Vec<Dispatcher>,
    workers: Vec<Worker>,
    ledger: Ledger,
    /// What a sweep has written; empty in between.
    written: Vec<(Transition, CallFacts)>,
    /// The tools of agents. Calls do not depend on them: each brings its own retry policy.
    tools: Tools,
    /// A decision that was made without a lock; for one mutation only.
    unlocked: Option<Decision>,
    /// The faults are over.
    draining: bool,
    /// Counts the ids of tasks' calls.
    ids: u128,
    /// Agents as JSON.
    agents: [String; 2],
    failures: Vec<[Failure; 2]>,
    violation: Option<Violation>,
    log: Option<Vec<String>>,
    /// Moves and everything that followed from them.
    pub(crate) steps: u64,
}

/// How a history ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Calls by state, in the order of [`CallState::ALL`].
    pub(crate) calls: [u64; 8],
    /// Tasks by state, in the order of [`TaskState::ALL`].
    pub(crate) tasks: [u64; 5],
    pub(crate) attempts: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            setup: Plan::empty().setup,
            mutation: None,
            now: 0,
            tables: Tables::default(),
            durable: Tables::default(),
            jobs: Vec::new(),
            results: Vec::new(),
            packets: Vec::new(),
            old_jobs: Vec::new(),
            old_reports: Vec::new(),
            seen: Vec::new(),
            nats_up: true,
            postgres_up: true,
            outages: 0,
            stream: 0,
            seq: 0,
            processes: 0,
            claims: 0,
            dispatchers: Vec::new(),
            workers: Vec::new(),
            ledger: Ledger::default(),
            written: Vec::new(),
            tools: invent::tools(),
            unlocked: None,
            draining: false,
            ids: 0,
            agents: invent::agents(),
            failures: ErrorClass::ALL.map(invent::failures).into(),
            violation: None,
            log: None,
            steps: 0,
        }
    }

    /// Plays a plan to its end. Tells how the calls ended, or what does not hold.
    pub(crate) fn run(&mut self, plan: &Plan, mutation: Option<Mutation>) -> Result<Ended, Violation> {
        self.begin(plan.setup, mutation);
        for one in &plan.moves {
            self.make(*one);
            if self.violation.is_some() {
                break;
            }
        }
        if self.violation.is_none() {
            self.drain();
        }
        if self.violation.is_none() {
            self.check();
        }
        self.violation.take().map_or_else(|| Ok(self.ended()), Err)
    }

    /// Plays a plan and writes down what happens.
    pub(crate) fn tell_all(
        &mut self,
        plan: &Plan,
        mutation: Option<Mutation>,
    ) -> (Vec<String>, Result<Ended, Violation>) {
        self.log = Some(Vec::new());
        let ended = self.run(plan, mutation);
        (self.log.take().unwrap_or_default(), ended)
    }

    fn begin(&mut self, setup: Setup, mutation: Option<Mutation>) {
        (self.setup, self.mutation, self.now) = (setup, mutation, 0);
        redial_engine::mutation::activate(mutation.and_then(Mutation::of_engine));
        self.tables.clear();
        self.durable.clear();
        self.jobs.clear();
        self.results.clear();
        self.packets.clear();
        self.old_jobs.clear();
        self.old_reports.clear();
        self.seen.clear();
        (self.nats_up, self.postgres_up, self.draining) = (true, true, false);
        (self.outages, self.stream, self.seq, self.processes, self.claims) = (0, 0, 0, 0, 0);
        self.ledger.clear();
        self.ledger.disturbed.push(false);
        (self.unlocked, self.violation, self.ids) = (None, None, 0);
        for call in 0..setup.calls {
            let deadline = if setup.is_urgent(call) { 60_000 } else { 7_200_000 };
            self.tables.calls.push(Row::new(setup.effect(call), setup.max_attempts(call), deadline));
        }
        for _ in 0..setup.tasks {
            self.tables.tasks.push(TaskRow {
                exists: false,
                state: TaskState::Waiting,
                progress: None,
                last_step: 0,
                wake_at: None,
            });
        }
        self.dispatchers.clear();
        self.workers.clear();
        for _ in 0..setup.dispatchers {
            let process = self.new_process();
            self.dispatchers.push(Dispatcher::new(process, 0));
        }
        for _ in 0..setup.workers {
            let process = self.new_process();
            self.workers.push(Worker::new(process));
        }
    }

    fn new_process(&mut self) -> Process {
        self.processes += 1;
        self.ledger.disturbed.push(false);
        self.processes
    }

    fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn accuse(&mut self, invariant: Invariant, found: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { invariant, found: found() });
        }
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        self.steps += 1;
        if let Some(log) = &mut self.log {
            let (s, ms) = (self.now / 1000, self.now % 1000);
            log.push(format!("{s:>5}.{ms:03}  {}", what()));
        }
    }

    fn ended(&self) -> Ended {
        let mut ended = Ended { attempts: self.tables.attempts.len() as u64, ..Ended::default() };
        for row in self.tables.calls.iter().filter(|row| row.exists) {
            ended.calls[CallState::ALL.iter().position(|state| *state == row.state).unwrap_or(0)] += 1;
        }
        for row in self.tables.tasks.iter().filter(|row| row.exists) {
            ended.tasks[TaskState::ALL.iter().position(|state| *state == row.state).unwrap_or(0)] += 1;
        }
        ended
    }
}

impl World {
    /// A reported failure as the engine takes it; `None` for a success.
    fn failure(&self, outcome: &rows::Outcome) -> Option<Failure> {
        let class = outcome.class?;
        let n = ErrorClass::ALL.iter().position(|known| *known == class)?;
        let failure = self.failures[n][usize::from(outcome.effect_possible)].clone();
        Some(match outcome.retry_after {
            Some(pause) => failure.retry_after_ms(pause),
            None => failure,
        })
    }
}
