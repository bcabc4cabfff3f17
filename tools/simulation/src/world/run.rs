//! Plays a plan from its first move to the check of the invariants.

use redial_engine::health;
use redial_proto::{CallState, RetryBudget, TaskState};
use redial_records::ToolHealth;

use super::{
    clock::time,
    dispatcher::Dispatcher,
    ids::TOOLS,
    state::World,
    tables::{CallRow, TaskRow},
    worker::Worker,
};
use crate::{Mutation, Setup, Violation, plan::Plan};

/// How the calls and tasks of a history ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Calls by state, in the order of [`CallState::ALL`].
    pub(crate) calls: [u64; CallState::ALL.len()],
    /// Tasks by state, in the order of [`TaskState::ALL`].
    pub(crate) tasks: [u64; 5],
    pub(crate) attempts: u64,
}

impl World {
    /// Plays a plan to its end, and returns how its calls and tasks ended or the first violation.
    pub(crate) fn run(&mut self, plan: &Plan, mutation: Option<Mutation>) -> Result<Ended, Violation> {
        self.begin(plan.setup, mutation);
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

    /// Does the same, and logs each event.
    pub(crate) fn run_logged(
        &mut self,
        plan: &Plan,
        mutation: Option<Mutation>,
    ) -> (Vec<String>, Result<Ended, Violation>) {
        self.log_lines = Some(Vec::new());
        let ended = self.run(plan, mutation);
        (self.log_lines.take().unwrap_or_default(), ended)
    }

    fn begin(&mut self, setup: Setup, mutation: Option<Mutation>) {
        (self.setup, self.mutation, self.now) = (setup, mutation, 0);
        redial_engine::mutation::activate(mutation.and_then(Mutation::of_engine));
        self.tables.clear();
        self.durable.clear();
        self.jobs.clear();
        self.results.clear();
        self.control_messages.clear();
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
            self.tables.calls.push(CallRow::new(
                setup.tool(call),
                setup.effect(call),
                setup.max_attempts(call),
                deadline,
            ));
        }
        for _ in 0..setup.tasks {
            self.tables.tasks.push(TaskRow {
                exists: false,
                state: TaskState::Waiting,
                progress: None,
                last_step: 0,
                submitted_at: 0,
                wake_at: None,
            });
        }
        self.dispatchers.clear();
        self.workers.clear();
        for _ in 0..setup.dispatchers {
            let process = self.new_process();
            self.dispatchers.push(Dispatcher::new(process, 0, setup.window()));
        }
        for _ in 0..setup.workers {
            let process = self.new_process();
            self.workers.push(Worker::new(process, self.tools_of(process)));
        }
        for tool in TOOLS {
            self.tables
                .health
                .push(ToolHealth { tokens: setup.tokens(), ..health::fresh(tool, &RetryBudget::default(), time(0)) });
        }
        self.record_heartbeats();
        for d in 0..self.dispatchers.len() {
            self.look_at_workers(d);
            self.look_at_stream(d);
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
