//! Checks the invariants on the tables after everything has ended.

use redial_engine::{
    call::TIMEOUT_MARGIN_MS,
    task::{Difference, Recorded, replay},
};
use redial_proto::{CallState, ErrorClass, Language, Role, StoredMessage};

use super::{
    Execution, TIMEOUT, World, invent, job_of, named,
    tables::{AttemptRow, CallRow},
    task_id,
};
use crate::{Invariant, random::mix};

/// The tasks of one history in so many are replayed: a run that replays all takes nearly twice as long.
const REPLAYED: u64 = 4;

impl World {
    pub(super) fn check(&mut self) {
        let lost_calls =
            self.calls.iter().enumerate().filter(|(n, row)| !row.exists && self.acknowledged_calls >> n & 1 == 1);
        let lost_tasks =
            self.tasks.iter().enumerate().filter(|(n, row)| !row.exists && self.acknowledged_tasks >> n & 1 == 1);
        let lost = lost_calls.count() + lost_tasks.count();
        if lost > 0 {
            let found = || format!("{lost} acknowledged calls or tasks do not exist");
            self.report_violation(Invariant::AcknowledgedExists, found);
        }
        for n in (0..self.calls.len()).filter(|n| self.calls[*n].exists).collect::<Vec<_>>() {
            self.check_call(&self.calls[n].clone());
        }
        for n in 0..self.attempts.len() {
            self.check_attempt(self.attempts[n]);
        }
        self.check_effects();
        if self.setup.tasks > 0 {
            self.messages.sort_by_key(|stored| stored.seq);
            self.check_steps();
            self.check_messages();
            if mix(self.setup.seed).is_multiple_of(REPLAYED) {
                self.check_replays();
            }
        }
    }

    fn check_call(&mut self, row: &CallRow) {
        let (call, state, attempt) = (row.record.id, row.record.state, row.record.attempt);
        if attempt > row.max_attempts() {
            let found = || format!("call {call}: {attempt} attempts of {}", row.max_attempts());
            self.report_violation(Invariant::AttemptsWithinMax, found);
        }
        let attempts: Vec<AttemptRow> = self.attempts.iter().filter(|one| one.job.call == call).copied().collect();
        if !attempts.iter().map(|one| one.job.attempt).eq(1..=attempt) {
            let found = || format!("call {call}: {attempts:?} of {attempt}");
            return self.report_violation(Invariant::AttemptsWithoutGaps, found);
        }
        if attempts.windows(2).any(|pair| pair[1].started_at < pair[0].ended_at) {
            self.report_violation(Invariant::LeasesApart, || format!("attempts of call {call} overlap"));
        }
        let successes = attempts.iter().filter(|one| one.class.is_none()).count();
        let last = attempts.last().is_some_and(|one| one.class.is_none());
        let succeeded = state == CallState::Succeeded;
        if last != succeeded || successes != usize::from(succeeded) || succeeded != row.class.is_none() {
            let found = || format!("call {call} is {state} and {successes} of its attempts succeeded");
            self.report_violation(Invariant::OneOutcome, found);
        }
    }

    /// Checks that the recorded result is the one that the worker of the attempt reported.
    fn check_attempt(&mut self, row: AttemptRow) {
        let mut own = self.executions.iter().filter(|one| job_of(one.grant) == row.job && one.worker == row.worker);
        let said = own.any(|one| one.reported.is_some_and(|outcome| outcome.class == row.class));
        // An attempt that was released after a cancel ends as cancelled without a report.
        let given_back = row.class == Some(ErrorClass::Cancelled);
        // The dispatchers end an attempt that its worker did not end in time.
        let limit = row.started_at + TIMEOUT + std::time::Duration::from_millis(TIMEOUT_MARGIN_MS);
        let overdue = row.class == Some(ErrorClass::Timeout) && row.ended_at >= limit;
        let lost = row.class == Some(ErrorClass::Lost);
        if !said && !lost && !given_back && !overdue {
            let found = || format!("attempt {} is {:?}, its worker did not report that", named(row.job), row.class);
            self.report_violation(Invariant::RecordedAsReported, found);
        }
        if lost && self.setup.calm && !self.disturbed.contains(&row.worker) {
            let found = || format!("attempt {} is lost, and its worker did not die", named(row.job));
            self.report_violation(Invariant::NoAttemptLostToOutage, found);
        }
    }

    /// Checks effects. Ignores executions that their own worker stopped, which were released and run again under the
    /// same number, and those whose grants the record lost and did not take back.
    fn check_effects(&mut self) {
        let worked = |one: &&Execution| one.effect && !one.stopped && !one.lost;
        for (n, one) in self.executions.iter().enumerate().filter(|(_, one)| worked(one)) {
            let job = job_of(one.grant);
            let twice = self.executions[..n].iter().filter(worked).any(|other| job_of(other.grant) == job);
            if twice || !(1..=self.call(job.call).record.attempt).contains(&job.attempt) {
                let job = named(job);
                let found = || format!("a second effect in attempt {job}, or one of no recorded attempt");
                return self.report_violation(Invariant::EffectsWithinAttempts, found);
            }
        }
    }

    fn check_steps(&mut self) {
        for task in 0..self.tasks.len() {
            let own = self.recorded_steps.iter().filter(|(owner, _)| *owner == task);
            let steps = own.map(|(_, step)| step.step);
            if !steps.eq(1..=self.tasks[task].last_step) {
                self.report_violation(Invariant::StepsWithoutGaps, || format!("the steps of task {task} have gaps"));
            }
        }
    }

    fn check_messages(&mut self) {
        let messages = std::mem::take(&mut self.messages);
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
        self.messages = messages;
    }

    fn check_replays(&mut self) {
        for task in 0..self.tasks.len() {
            if self.violation.is_none()
                && let Some(difference) = self.replay(task).first()
            {
                self.report_violation(Invariant::ReplayAgrees, || format!("task {task}, {difference}"));
            }
        }
    }

    /// Returns the differences between a task on record and its replay.
    fn replay(&self, task: usize) -> Vec<Difference> {
        let Ok(spec) = serde_json::from_str(self.agent()) else { return Vec::new() };
        let steps = self.recorded_steps.iter().filter(|(owner, _)| *owner == task).map(|(_, step)| step.clone());
        let ended = |row: &CallRow| {
            let of = row.task.filter(|of| of.task == task_id(task))?;
            row.record.state.is_terminal().then(|| self.ended_call(row, of))
        };
        replay(&Recorded {
            task: task_id(task),
            spec: &spec,
            language: Language::En,
            input: invent::INPUT,
            steps: &steps.collect::<Vec<_>>(),
            messages: &self.messages,
            calls: &self.calls.iter().filter_map(ended).collect::<Vec<_>>(),
        })
    }
}
