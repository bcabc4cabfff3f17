//! The state of a history, and the few helpers that all verbs need.

use redial_engine::tools::Tools;
use redial_proto::{ErrorClass, Failure};
use redial_records::{CallFacts, Transition};

use super::{
    clock::Ms,
    dispatcher::Dispatcher,
    ids::{Claim, ConsumerNo, Process},
    invent,
    ledger::Ledger,
    messages::{ControlMessage, Job, JobMessage, Outcome, Report, ResultMessage},
    tables::{Decision, Tables},
    worker::Worker,
};
use crate::{Invariant, Mutation, Setup, Violation, plan::Plan};

/// A running history. One world plays many histories, so that they need few allocations.
pub(crate) struct World {
    pub(super) setup: Setup,
    pub(super) mutation: Option<Mutation>,
    pub(super) now: Ms,
    pub(super) tables: Tables,
    /// The tables as a crash of Postgres leaves them; used by one mutation only.
    pub(super) durable: Tables,
    pub(super) jobs: Vec<JobMessage>,
    pub(super) results: Vec<ResultMessage>,
    pub(super) control_messages: Vec<ControlMessage>,
    /// Everything that was ever published, to appear again.
    pub(super) old_jobs: Vec<(Job, ConsumerNo)>,
    pub(super) old_reports: Vec<Report>,
    /// Message ids that NATS has seen: call, attempt, number of the publication.
    pub(super) seen: Vec<(Job, u32)>,
    pub(super) nats_up: bool,
    pub(super) postgres_up: bool,
    /// Counts the outages of NATS and Postgres.
    pub(super) outages: u32,
    /// Counts the wipes of the streams.
    pub(super) stream: u32,
    /// Counts the messages of all streams.
    pub(super) seq: u32,
    /// The last numbers given to processes and claims.
    pub(super) processes: Process,
    pub(super) claims: Claim,
    pub(super) dispatchers: Vec<Dispatcher>,
    pub(super) workers: Vec<Worker>,
    pub(super) ledger: Ledger,
    /// Transitions that the current sweep has written; empty between sweeps.
    pub(super) written: Vec<(Transition, CallFacts)>,
    /// The tools of agents. Calls do not depend on them: each has its own retry policy.
    pub(super) tools: Tools,
    /// A decision that was made without a lock; used by one mutation only.
    pub(super) unlocked: Option<Decision>,
    /// The faults are over, and everything must end.
    pub(super) draining: bool,
    /// Counts the ids that the planner was given for calls.
    pub(super) ids: u128,
    /// Agents as JSON.
    pub(super) agents: [String; 2],
    pub(super) failures: Vec<[Failure; 2]>,
    pub(super) violation: Option<Violation>,
    pub(super) log_lines: Option<Vec<String>>,
    /// Events of all histories so far.
    pub(crate) steps: u64,
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
            control_messages: Vec::new(),
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
            log_lines: None,
            steps: 0,
        }
    }

    pub(super) fn new_process(&mut self) -> Process {
        self.processes += 1;
        self.ledger.disturbed.push(false);
        self.processes
    }

    pub(super) fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub(super) fn report_violation(&mut self, invariant: Invariant, found: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { invariant, found: found() });
        }
    }

    pub(super) fn log(&mut self, what: impl FnOnce() -> String) {
        self.steps += 1;
        if let Some(log) = &mut self.log_lines {
            let (s, ms) = (self.now / 1000, self.now % 1000);
            log.push(format!("{s:>5}.{ms:03}  {}", what()));
        }
    }

    /// A reported failure as the engine takes it; `None` for a success.
    pub(super) fn failure(&self, outcome: &Outcome) -> Option<Failure> {
        let class = outcome.class?;
        let n = ErrorClass::ALL.iter().position(|known| *known == class)?;
        let failure = self.failures[n][usize::from(outcome.effect_possible)].clone();
        Some(match outcome.retry_after {
            Some(pause) => failure.retry_after_ms(pause),
            None => failure,
        })
    }
}
