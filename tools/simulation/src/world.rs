//! One history: the tables, streams, processes and clients that a plan runs with, all in memory.

mod calls;
mod check;
mod dispatcher;
mod feeder;
mod invent;
mod moves;
mod operations;
mod tables;
mod tasks;
mod worker;

use std::sync::LazyLock;

use chrono::TimeDelta;
use redial_engine::{Time, tools::Tools};
use redial_proto::{
    CallId, CallState, ErrorClass, Failure, GrantRef, JobRef, StoredMessage, TaskId, TaskState, TaskStep, WorkerId,
};
use uuid::Uuid;

use self::{
    dispatcher::Dispatcher,
    tables::{AttemptRow, CallRow, InboxRow, TaskRow},
    worker::{Execution, LateAnswer, OpenClaim, Outcome, Report, Request, Worker},
};
use crate::{Invariant, Mutation, Setup, Tally, Violation, plan::Plan, random::mix};

/// How long a lease lasts after a claim or a heartbeat.
const LEASE: TimeDelta = TimeDelta::seconds(15);
/// The timeout of every attempt.
const TIMEOUT: TimeDelta = TimeDelta::seconds(60);
/// A message that is not acknowledged is delivered again after this.
const ACK_WAIT: TimeDelta = TimeDelta::seconds(30);

/// The tool of all calls, as dispatchers and workers know it. Whatever agents call their tools: what runs them is no
/// concern of a task.
const TOOL: &str = "tool";
/// From where all workers pull.
const CONSUMER: &str = "workers";
/// Whose calls they are; all tasks are of the first one.
const TENANTS: [&str; 2] = ["acme", "zebra"];

/// A worker or dispatcher process: each new one has a new number.
type Process = u32;

#[expect(clippy::expect_used, reason = "a number is a valid id")]
fn worker_id(process: Process) -> WorkerId {
    process.to_string().parse().expect("digits are allowed")
}

fn call_id(number: u128) -> CallId {
    CallId(Uuid::from_u128(number))
}

fn task_id(task: usize) -> TaskId {
    TaskId(Uuid::from_u128(task as u128))
}

fn task_no(id: TaskId) -> usize {
    id.0.as_u128() as usize
}

/// The tools of agents. Calls do not depend on them: each has its own retry policy.
static TOOLS: LazyLock<Tools> = LazyLock::new(invent::tools);
/// Agents as JSON.
static AGENTS: LazyLock<[String; 2]> = LazyLock::new(invent::agents);

/// A job on its stream.
#[derive(Clone, Copy, Debug)]
struct JobMessage {
    job: JobRef,
    /// A worker has pulled it.
    delivered: bool,
    /// It is not delivered before this.
    redeliver_at: Time,
}

/// A report on its stream.
#[derive(Clone, Copy, Debug)]
struct ResultMessage {
    number: u32,
    report: Report,
    redeliver_at: Time,
}

#[derive(Default)]
pub(crate) struct World {
    setup: Setup,
    mutation: Option<Mutation>,
    now: Time,
    // Postgres.
    calls: Vec<CallRow>,
    attempts: Vec<AttemptRow>,
    /// Results that came too late: the attempt and the worker.
    late: Vec<(JobRef, Process)>,
    tasks: Vec<TaskRow>,
    inbox: Vec<InboxRow>,
    messages: Vec<StoredMessage>,
    /// The requests to models without their messages, as JSON.
    requests: Vec<(CallId, String)>,
    /// Steps, each with its task.
    recorded_steps: Vec<(usize, TaskStep)>,
    /// Calls whose rows somebody holds locked.
    locked: Vec<CallId>,
    /// Grants that failovers lost, whether or not they were taken back.
    lost: Vec<GrantRef>,
    // NATS.
    jobs: Vec<JobMessage>,
    results: Vec<ResultMessage>,
    /// Everything that was ever sent, to appear again.
    old_jobs: Vec<JobRef>,
    old_reports: Vec<Report>,
    old_requests: Vec<Request>,
    /// Answers to heartbeats that are late.
    late_answers: Vec<LateAnswer>,
    nats_up: bool,
    postgres_up: bool,
    /// Counts the outages of both.
    outages: u32,
    // Processes.
    dispatchers: Vec<Dispatcher>,
    workers: Vec<Worker>,
    /// Claims of which copies may still be under way.
    claims: Vec<OpenClaim>,
    /// Releases that got no reply yet.
    releases: Vec<(Process, GrantRef)>,
    /// The last number given to a process, a message, a claim, a call of a task, or an item of an inbox.
    numbers: u32,
    // What really happened, and what was acknowledged: the invariants compare the tables with this.
    executions: Vec<Execution>,
    acknowledged_calls: u64,
    acknowledged_tasks: u64,
    /// Calls whose cancel was acknowledged.
    cancelled: Vec<CallId>,
    /// Worker processes that are gone, and when each was last answered.
    gone: Vec<(Process, Time)>,
    /// Worker processes that were killed, paused or cut off.
    disturbed: Vec<Process>,
    /// The faults are over, and everything must end.
    draining: bool,
    violation: Option<Violation>,
    pub(crate) log_lines: Option<Vec<String>>,
    steps: u64,
}

impl World {
    pub(crate) fn new(setup: Setup, mutation: Option<Mutation>) -> Self {
        redial_engine::mutation::activate(mutation.and_then(Mutation::of_engine));
        let mut world = Self {
            setup,
            mutation,
            calls: (0..setup.calls).map(|call| CallRow::of_client_call(&setup, call)).collect(),
            tasks: vec![TaskRow::default(); usize::from(setup.tasks)],
            nats_up: true,
            postgres_up: true,
            numbers: 100,
            ..Self::default()
        };
        for _ in 0..setup.workers {
            let worker = world.new_worker();
            world.workers.push(worker);
        }
        for _ in 0..setup.dispatchers {
            let dispatcher = world.new_dispatcher();
            world.dispatchers.push(dispatcher);
        }
        world
    }

    /// Plays a plan to its end, and returns how its calls and tasks ended or the first violation.
    pub(crate) fn run(&mut self, plan: &Plan) -> Result<Tally, Violation> {
        for one in &plan.moves {
            self.play(*one);
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

    fn ended(&self) -> Tally {
        let mut ended = Tally {
            histories: 1,
            with_tasks: u64::from(self.setup.tasks > 0),
            calm: u64::from(self.setup.calm),
            steps: self.steps,
            attempts: self.attempts.len() as u64,
            ..Tally::default()
        };
        for row in self.calls.iter().filter(|row| row.exists) {
            ended.calls[CallState::ALL.iter().position(|state| *state == row.record.state).unwrap_or(0)] += 1;
        }
        for row in self.tasks.iter().filter(|row| row.exists) {
            ended.tasks[TaskState::ALL.iter().position(|state| *state == row.state).unwrap_or(0)] += 1;
        }
        ended
    }

    // ---- What all parts need ----

    fn new_number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    /// True if the network delivers at once.
    fn is_prompt(&self) -> bool {
        self.setup.calm || self.draining
    }

    /// Returns a number that follows from the history so far; 0, the simplest choice, where nothing goes wrong.
    fn chance(&self) -> u32 {
        if self.is_prompt() { 0 } else { mix(self.setup.seed ^ self.steps) as u32 }
    }

    fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn report_violation(&mut self, invariant: Invariant, found: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { invariant, found: found() });
        }
    }

    fn log(&mut self, what: impl FnOnce() -> String) {
        self.steps += 1;
        if let Some(log) = &mut self.log_lines {
            let ms = self.now.timestamp_millis();
            log.push(format!("{:>5}.{:03}  {}", ms / 1000, ms % 1000, what()));
        }
    }

    fn call(&self, id: CallId) -> &CallRow {
        &self.calls[self.index(id)]
    }

    fn call_mut(&mut self, id: CallId) -> &mut CallRow {
        let index = self.index(id);
        &mut self.calls[index]
    }

    #[expect(clippy::expect_used, reason = "no call is ever removed")]
    fn index(&self, id: CallId) -> usize {
        self.calls.iter().position(|row| row.record.id == id).expect("only calls on record are named")
    }

    /// Returns the time since the history began, as the engine's outage detector takes it.
    fn uptime(&self) -> std::time::Duration {
        (self.now - Time::default()).to_std().unwrap_or_default()
    }
}

const fn job_of(grant: GrantRef) -> JobRef {
    JobRef { call: grant.call, attempt: grant.attempt }
}

/// Writes a job in a log line: its call and attempt.
fn named(job: JobRef) -> String {
    format!("{}.{}", job.call.0.as_u128(), job.attempt)
}

/// Returns a reported failure as the engine takes it; `None` for a success.
fn failure(outcome: Outcome) -> Option<Failure> {
    let failure = Failure::new(outcome.class?, "it failed");
    let failure = if outcome.effect_possible { failure } else { failure.without_effect() };
    let after = outcome.class == Some(ErrorClass::RateLimited) && outcome.pauses;
    Some(if after { failure.retry_after_ms(20_000) } else { failure })
}
