//! Events that are possible without time passing: a message arrives, a worker pulls, a tool ends. The plan picks one.

use redial_proto::ErrorClass;

use super::{
    clock::{ACK_WAIT, Ms},
    dispatcher::OperationKind,
    messages::{Job, JobMessage, Outcome},
    state::World,
    transaction::CommitOutcome,
    worker::{Held, Worker},
};
use crate::Invariant;

impl World {
    /// Runs one of the possible events; false if there is none.
    pub(super) fn next_event(&mut self, pick: u32) -> bool {
        let counts = [
            self.control_messages_to_deliver(),
            self.operations_to_step(),
            self.results_to_take(),
            self.tools_that_run(),
            self.workers_that_can_pull(),
            self.tasks_to_advance(),
            self.functions_to_answer(),
        ];
        let all: usize = counts.iter().sum();
        if all == 0 {
            return false;
        }
        let mut n = (pick & 0xffff) as usize % all;
        let mut kind = 0;
        while n >= counts[kind] {
            n -= counts[kind];
            kind += 1;
        }
        match kind {
            0 => self.next_control_message(n, pick),
            1 => self.next_operation(n, CommitOutcome::of(pick)),
            2 => self.take_result(n, pick),
            3 => self.run_tool(n, pick >> 16),
            4 => self.next_pull(n),
            5 => self.next_task(n, pick),
            _ => self.next_answer(n, pick),
        }
        true
    }

    fn control_messages_to_deliver(&self) -> usize {
        if !self.nats_up {
            return 0;
        }
        self.control_messages.iter().filter(|message| self.can_deliver(message)).count()
    }

    fn next_control_message(&mut self, n: usize, pick: u32) {
        let found = (0..self.control_messages.len()).filter(|at| self.can_deliver(&self.control_messages[*at])).nth(n);
        if let Some(at) = found {
            let message = self.control_messages.remove(at);
            self.deliver(message, pick);
        }
    }

    fn operations_to_step(&self) -> usize {
        if !self.postgres_up {
            return 0;
        }
        self.dispatchers.iter().map(|dispatcher| dispatcher.operations.len()).sum()
    }

    fn next_operation(&mut self, mut n: usize, commit: CommitOutcome) {
        for d in 0..self.dispatchers.len() {
            let operations = self.dispatchers[d].operations.len();
            if n < operations {
                return self.step(d, n, commit);
            }
            n -= operations;
        }
    }

    fn results_to_take(&self) -> usize {
        if !self.nats_up {
            return 0;
        }
        self.results.iter().filter(|message| message.redeliver_at <= self.now).count()
    }

    /// A dispatcher takes a report from the stream.
    fn take_result(&mut self, n: usize, pick: u32) {
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let now = self.now;
        let Some(message) = self.results.iter_mut().filter(|message| message.redeliver_at <= now).nth(n) else {
            return;
        };
        message.redeliver_at = now + ACK_WAIT;
        let message = *message;
        self.log(|| {
            let Job { call, attempt } = message.report.job;
            let how = message.report.outcome.class.map_or("succeeded", ErrorClass::as_str);
            format!("dispatcher {d} takes the report that attempt {attempt} of call {call} {how}")
        });
        self.dispatchers[d].begin(OperationKind::Ingest(message));
    }

    /// Attempts whose tool can go on. The tool of a paused process can have its effect, but not report its end. After the
    /// faults, the tool of a worker that is cut off hangs, so that others take over.
    fn running(&self) -> impl Iterator<Item = (usize, usize, &Held)> {
        let workers = self.workers.iter().enumerate().filter(|(_, worker)| !self.draining || !worker.cut);
        let held = workers.flat_map(|(w, worker)| worker.held.iter().enumerate().map(move |(n, held)| (w, n, held)));
        held.filter(|(.., held)| !held.reported)
    }

    fn tools_that_run(&self) -> usize {
        self.running().count()
    }

    /// A tool has its effect, or ends, or both.
    fn run_tool(&mut self, n: usize, pick: u32) {
        let Some((w, at, held)) = self.running().nth(n) else { return };
        let (job, execution) = (held.grant.job, held.execution);
        let done = self.ledger.executions[execution].effect;
        let outcome = self.outcome(pick, done);
        let has_effect = pick & 3 == 3 || outcome.class.is_none();
        if has_effect && !done {
            self.ledger.executions[execution].effect = true;
            self.log(|| format!("the tool of call {}, attempt {}, has its effect", job.call, job.attempt));
            self.check_effect(job);
            if pick & 3 == 3 {
                return;
            }
        }
        if self.workers[w].paused {
            return;
        }
        self.log(|| {
            let how = outcome.class.map_or("succeeded".to_owned(), |class| format!("failed: {class}"));
            format!("worker {w}: call {}, attempt {}, {how}", job.call, job.attempt)
        });
        self.report(w, at, outcome);
        self.replace_if_stopped(w);
    }

    fn check_effect(&mut self, job: Job) {
        let times = self.ledger.executions.iter().filter(|one| one.job.call == job.call && one.effect).count();
        if times > 1 && self.row(job.call).effect == redial_proto::ToolEffect::Unsafe {
            self.report_violation(Invariant::UnsafeOnce, || {
                format!("the unsafe tool of call {} had its effect twice", job.call)
            });
        }
    }

    /// How an attempt ends: three of five succeed.
    fn outcome(&self, pick: u32, effect: bool) -> Outcome {
        let number = pick >> 2 & 63;
        let class = if number < 38 { None } else { Some(random_class(number, self.now)) };
        let after = pick & 4 == 4 && class == Some(ErrorClass::RateLimited);
        Outcome { class, effect_possible: effect || pick & 3 != 1, retry_after: after.then_some(20_000) }
    }

    fn workers_that_can_pull(&self) -> usize {
        if !self.nats_up {
            return 0;
        }
        self.workers.iter().filter(|worker| self.can_pull(worker)).count()
    }

    fn can_pull(&self, worker: &Worker) -> bool {
        let waits =
            |message: &JobMessage| message.redeliver_at <= self.now && Some(message.consumer) == worker.consumer;
        worker.free_permits() > 0 && self.jobs.iter().any(waits)
    }

    fn next_pull(&mut self, n: usize) {
        let found = (0..self.workers.len()).filter(|w| self.can_pull(&self.workers[*w])).nth(n);
        if let Some(w) = found {
            self.pull(w);
        }
    }

    /// Delivers all control messages and runs the operations that they begin; no transaction fails.
    fn settle_control(&mut self) {
        for _ in 0..1000 {
            if self.violation.is_some() {
                return;
            }
            if self.control_messages_to_deliver() > 0 {
                self.next_control_message(0, 0);
            } else if self.operations_to_step() > 0 {
                self.next_operation(0, CommitOutcome::Committed);
            } else {
                return;
            }
        }
    }

    /// Lets time pass, and runs the timers of workers when they are due.
    pub(super) fn advance_to(&mut self, until: Ms) {
        let prompt = self.setup.calm || self.draining;
        loop {
            if prompt {
                self.settle_control();
            }
            let due = self.workers.iter().map(Worker::next_due_at).min().unwrap_or(Ms::MAX);
            if due > until || self.violation.is_some() {
                break;
            }
            self.now = self.now.max(due);
            for w in 0..self.workers.len() {
                if self.workers[w].next_due_at() <= self.now {
                    self.run_timers(w);
                }
            }
        }
        self.now = self.now.max(until);
        self.drop_old_jobs();
        self.record_heartbeats();
        for w in 0..self.workers.len() {
            self.replace_if_stopped(w);
        }
    }
}

/// A class that is mostly retried; never `lost`, which workers report only for a tool that they stopped.
fn random_class(number: u32, now: Ms) -> ErrorClass {
    const OFTEN: [ErrorClass; 4] =
        [ErrorClass::Unavailable, ErrorClass::Timeout, ErrorClass::RateLimited, ErrorClass::Internal];
    if number.is_multiple_of(4) {
        let any = ErrorClass::ALL[(number as usize + now.unsigned_abs() as usize) % ErrorClass::ALL.len()];
        return if any == ErrorClass::Lost { ErrorClass::Auth } else { any };
    }
    OFTEN[number as usize / 4 % OFTEN.len()]
}
