//! Checks the invariants on the tables after everything has ended.

use redial_engine::{
    call::TIMEOUT_MARGIN_MS,
    task::{Difference, Recorded, replay},
};
use redial_proto::{CallState, ErrorClass, Language, Role, StoredMessage};

use super::{
    clock::TIMEOUT,
    ids::{CallNo, task_id},
    invent,
    ledger::Execution,
    messages::Job,
    state::World,
    tables::{AttemptRow, CallRow},
};
use crate::{Invariant, random::mix};

/// The tasks of one history in so many are replayed: a run that replays all takes nearly twice as long.
const REPLAYED: u64 = 4;

impl World {
    pub(super) fn check(&mut self) {
        self.check_promises();
        for call in 0..self.tables.calls.len() {
            if self.tables.calls[call].exists && self.violation.is_none() {
                self.check_call(call as CallNo);
            }
        }
        for n in 0..self.tables.attempts.len() {
            self.check_attempt(self.tables.attempts[n]);
        }
        self.check_effects();
        if self.setup.tasks > 0 {
            self.tables.messages.sort_by_key(|stored| stored.seq);
            self.check_steps();
            self.check_messages();
            if mix(self.setup.seed).is_multiple_of(REPLAYED) {
                self.check_replays();
            }
        }
    }

    fn check_promises(&mut self) {
        for call in 0..usize::from(self.setup.calls) {
            if self.ledger.calls >> call & 1 == 1 && !self.tables.calls[call].exists {
                self.report_violation(Invariant::AcknowledgedExists, || {
                    format!("call {call} was acknowledged and does not exist")
                });
            }
        }
        for task in 0..usize::from(self.setup.tasks) {
            if self.ledger.tasks >> task & 1 == 1 && !self.tables.tasks[task].exists {
                self.report_violation(Invariant::AcknowledgedExists, || {
                    format!("task {task} was acknowledged and does not exist")
                });
            }
        }
    }

    fn check_call(&mut self, call: CallNo) {
        let row = self.row(call);
        if !row.state.is_terminal() {
            self.report_violation(Invariant::EveryCallEnds, || format!("call {call} is {}", row.state));
        }
        if row.attempt > row.max_attempts {
            let found = || format!("call {call}: {} attempts of {}", row.attempt, row.max_attempts);
            self.report_violation(Invariant::AttemptsWithinMax, found);
        }
        let attempts = || self.tables.attempts.iter().filter(move |one| one.job.call == call);
        let gapless = attempts().map(|one| one.job.attempt).eq(1..=row.attempt);
        let numbers = || attempts().map(|one| one.job.attempt).collect::<Vec<_>>();
        if !gapless {
            let found = format!("call {call}: attempts {:?} of {}", numbers(), row.attempt);
            return self.report_violation(Invariant::AttemptsWithoutGaps, || found);
        }
        let overlap = attempts().zip(attempts().skip(1)).any(|(one, next)| next.started_at < one.ended_at);
        let successes = attempts().filter(|one| one.class.is_none()).count();
        let last = attempts().next_back().is_some_and(|one| one.class.is_none());
        let succeeded = row.state == CallState::Succeeded;
        if overlap {
            self.report_violation(Invariant::LeasesApart, || format!("attempts of call {call} overlap"));
        }
        if last != succeeded || successes != usize::from(succeeded) || succeeded != row.class.is_none() {
            let found = || format!("call {call} is {} and {successes} of its attempts succeeded", row.state);
            self.report_violation(Invariant::OneOutcome, found);
        }
    }

    /// The recorded result is the one that the worker of the attempt reported.
    fn check_attempt(&mut self, row: AttemptRow) {
        // A client answered: no worker reported anything.
        if self.row(row.job.call).of_client {
            return;
        }
        let mut own = self.ledger.executions.iter().filter(|one| one.job == row.job && one.worker == row.worker);
        let reported = |one: &Execution| one.reported.is_some_and(|outcome| outcome.class == row.class);
        let said = own.any(reported);
        let Job { call, attempt } = row.job;
        // An attempt that was released after a cancel ends as cancelled without a report.
        let given_back = row.class == Some(ErrorClass::Cancelled);
        // The dispatchers end an attempt that its worker did not end in time.
        let limit = row.started_at + TIMEOUT + TIMEOUT_MARGIN_MS.cast_signed();
        let overdue = row.class == Some(ErrorClass::Timeout) && row.ended_at >= limit;
        if !said && row.class != Some(ErrorClass::Lost) && !given_back && !overdue {
            let found =
                || format!("attempt {attempt} of call {call} is {:?}, its worker did not report that", row.class);
            self.report_violation(Invariant::RecordedAsReported, found);
        }
        let lost = row.class == Some(ErrorClass::Lost) && !said;
        // Known limit: a call remembers one claim that was given up, not two. If the request of the other claim arrives
        // late enough, it is granted although no worker waits for it.
        let claims = self.ledger.given_up.iter().filter(|grant| grant.job.call == call).count();
        if lost && claims < 2 && self.setup.calm && !self.ledger.disturbed[usize::from(row.worker)] {
            let found = || format!("attempt {attempt} of call {call} is lost, and its worker did not die");
            self.report_violation(Invariant::NoAttemptLostToOutage, found);
        }
    }

    /// Ignores executions that their own worker stopped: they were released and run again under the same number.
    fn check_effects(&mut self) {
        let worked = |one: &&Execution| one.effect && !one.stopped;
        for (n, one) in self.ledger.executions.iter().enumerate().filter(|(_, one)| worked(one)) {
            let Job { call, attempt } = one.job;
            let twice = self.ledger.executions[..n].iter().filter(worked).any(|other| other.job == one.job);
            if twice || !(1..=self.row(call).attempt).contains(&attempt) {
                let found =
                    || format!("call {call}: a second effect in attempt {attempt}, or one of no recorded attempt");
                return self.report_violation(Invariant::EffectsWithinAttempts, found);
            }
        }
    }

    fn check_steps(&mut self) {
        for task in 0..self.tables.tasks.len() {
            let steps =
                self.tables.steps.iter().filter(|(owner, _)| usize::from(*owner) == task).map(|(_, step)| step.step);
            if !steps.eq(1..=self.tables.tasks[task].last_step) {
                self.report_violation(Invariant::StepsWithoutGaps, || format!("the steps of task {task} have gaps"));
            }
        }
    }

    fn check_messages(&mut self) {
        let messages = std::mem::take(&mut self.tables.messages);
        if let Some((wanted, found)) = (1..).zip(&messages).find(|(wanted, found)| *wanted != found.seq) {
            let found = found.seq;
            self.report_violation(Invariant::MessagesWithoutGaps, || {
                format!("message {wanted} is missing before {found}")
            });
        }
        let mut open = std::collections::VecDeque::new();
        for StoredMessage { seq, message, .. } in &messages {
            let fits = match message.role {
                Role::Tool => open.pop_front() == message.call_id.as_ref(),
                _ => open.is_empty(),
            };
            if !fits {
                self.report_violation(Invariant::OneAnswerPerCall, || {
                    format!("message {seq} answers {:?}", message.call_id)
                });
            }
            open.extend(message.calls.iter().map(|call| &call.id));
        }
        if let Some(id) = open.front() {
            self.report_violation(Invariant::OneAnswerPerCall, || format!("call {id} is not answered"));
        }
        self.tables.messages = messages;
    }

    fn check_replays(&mut self) {
        for task in 0..self.tables.tasks.len() as u8 {
            if self.violation.is_none()
                && let Some(difference) = self.replay(task).first()
            {
                self.report_violation(Invariant::ReplayAgrees, || format!("task {task}, {difference}"));
            }
        }
    }

    /// The differences between a task on record and its replay.
    fn replay(&self, task: u8) -> Vec<Difference> {
        let Ok(spec) = serde_json::from_str(self.agent()) else { return Vec::new() };
        let steps = self.tables.steps.iter().filter(|(owner, _)| *owner == task).map(|(_, step)| step.clone());
        let ended = |(call, row): (usize, &CallRow)| {
            let of = row.task.filter(|of| of.task == task_id(task))?;
            row.state.is_terminal().then(|| self.ended_call(call as CallNo, of))
        };
        replay(&Recorded {
            task: task_id(task),
            spec: &spec,
            language: Language::En,
            input: invent::INPUT,
            steps: &steps.collect::<Vec<_>>(),
            messages: &self.tables.messages,
            calls: &self.tables.calls.iter().enumerate().filter_map(ended).collect::<Vec<_>>(),
        })
    }
}
