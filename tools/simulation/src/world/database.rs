//! Postgres: each function is one statement or one transaction, with the guards of `crates/store/sql`.

use redial_engine::{
    call::{grants, renews},
    publish::FIRST_CHECK_MS,
};
use redial_proto::{CallState, ErrorClass, JobRef};
use redial_records::{self as records, Backlog, CallFacts, Change, Guard, InboxItem, Transition};

use super::{
    clock::{LEASE, since, time},
    ids::{CallNo, Claim, ConsumerNo, Process, ToolNo, call_id, call_no, claim_id, process_of, task_no, worker_id},
    messages::{Grant, Job},
    state::World,
    tables::{AttemptRow, CallRow},
};
use crate::{Invariant, Mutation};

impl World {
    pub(super) fn row(&self, call: CallNo) -> CallRow {
        self.tables.calls[usize::from(call)]
    }

    /// The tool of a call, without a copy of its row.
    pub(super) fn tool_of_call(&self, call: CallNo) -> ToolNo {
        self.tables.calls[usize::from(call)].tool
    }

    pub(super) fn row_mut(&mut self, call: CallNo) -> &mut CallRow {
        &mut self.tables.calls[usize::from(call)]
    }

    /// `submit.sql`: writes a call unless it is on record already. Without a consumer it waits in the backlog.
    pub(super) fn insert(&mut self, call: CallNo, consumer: Option<ConsumerNo>) -> bool {
        let now = self.now;
        let published = consumer.is_some();
        let row = self.row_mut(call);
        if row.exists {
            return false;
        }
        *row = CallRow {
            exists: true,
            submitted_at: now,
            deadline_at: now + row.deadline_ms,
            wake_at: now + if published { row.deadline_ms.min(FIRST_CHECK_MS.cast_signed()) } else { row.deadline_ms },
            publish_no: u32::from(published),
            published_at: published.then_some(now),
            consumer,
            backlog: (!published).then_some(Backlog::Job),
            backlog_at: now,
            ..*row
        };
        true
    }

    /// `claim.sql`: the only place that allows an execution.
    pub(super) fn claim(&mut self, worker: Process, claim: Claim, mut job: Job, deliveries: u32) -> Option<Job> {
        let row = self.row(job.call);
        if !row.exists {
            return None;
        }
        if self.has(Mutation::DeliveryCountAsAttempt) {
            job.attempt = deliveries;
        }
        let granted = self.grants(&row, worker, claim, job);
        if granted && row.state == CallState::Running {
            self.row_mut(job.call).lease_until = self.now + LEASE;
            return Some(job);
        }
        if !self.may_grant(&row, job, granted) {
            return None;
        }
        self.check_grant(&row, job);
        let now = self.now;
        let row = self.row_mut(job.call);
        *row = CallRow {
            state: CallState::Running,
            attempt: job.attempt,
            claim,
            worker,
            started_at: now,
            lease_until: now + LEASE,
            wake_at: row.wake_at.min(now + LEASE),
            backlog: None,
            ..*row
        };
        Some(job)
    }

    fn grants(&self, row: &CallRow, worker: Process, claim: Claim, job: Job) -> bool {
        let job = JobRef { call: call_id(job.call), attempt: job.attempt };
        let mut record = row.record(call_no(job.call), self.now);
        let (claim, worker, tool) = (claim_id(claim), worker_id(worker), record.tool.clone());
        let pending = records::Claim { job, claim, worker, tool };
        if row.state == CallState::Ready && self.has(Mutation::ReleaseWithoutGivingUp) {
            record.claim = None;
        }
        grants(&record, &pending, time(self.now))
    }

    fn may_grant(&self, row: &CallRow, job: Job, granted: bool) -> bool {
        match self.mutation {
            Some(Mutation::ClaimWithoutCompare) => !row.state.is_terminal(),
            Some(Mutation::DeliveryCountAsAttempt) => row.state == CallState::Ready,
            Some(Mutation::CancelNotCheckedAtClaim) if row.state == CallState::Cancelled => {
                row.attempt + 1 == job.attempt
            }
            _ => granted,
        }
    }

    fn check_grant(&mut self, row: &CallRow, job: Job) {
        if self.ledger.cancelled >> job.call & 1 == 1 {
            self.report_violation(Invariant::NothingAfterCancel, || {
                format!("attempt {} of call {} is granted", job.attempt, job.call)
            });
        }
        if row.state.is_terminal() {
            self.report_violation(Invariant::EndedStaysEnded, || {
                format!("call {} is {} and is granted", job.call, row.state)
            });
        }
        if job.attempt > row.max_attempts {
            let most = row.max_attempts;
            self.report_violation(Invariant::AttemptsWithinMax, || {
                format!("attempt {} of {most}, call {}", job.attempt, job.call)
            });
        }
    }

    /// `renew.sql`: extends the lease of an attempt that the worker still holds; true if its user asked to stop it.
    pub(super) fn renew(&mut self, worker: Process, job: Job) -> Option<bool> {
        let now = self.now;
        let row = self.row(job.call);
        if !renews(&row.record(job.call, now), &worker_id(worker), job.attempt) {
            return None;
        }
        self.row_mut(job.call).lease_until = now + LEASE;
        Some(row.cancel_requested)
    }

    /// `give_up.sql`: keeps a claim that its worker no longer waits for from being granted. A call remembers only the
    /// last such claim, and only while it is `ready`.
    pub(super) fn give_up(&mut self, grant: Grant) {
        if !self.ledger.given_up.contains(&grant) {
            self.ledger.given_up.push(grant);
        }
        if self.has(Mutation::ReleaseWithoutGivingUp) {
            return;
        }
        let row = self.row_mut(grant.job.call);
        if row.state == CallState::Ready && row.attempt + 1 == grant.job.attempt {
            row.claim = grant.claim;
        }
    }

    /// `apply.sql`: changes a call and records the attempt that this ends, if the call still meets the guard.
    pub(super) fn apply(&mut self, transition: &Transition) -> Option<CallFacts> {
        let call = call_no(transition.call);
        let before = self.row(call);
        if !before.exists || !meets(&before, &transition.guard) {
            return None;
        }
        if before.state.is_terminal() {
            let found = || format!("call {call} was {} and becomes {}", before.state, transition.state());
            self.report_violation(Invariant::EndedStaysEnded, found);
        }
        let now = self.now;
        let row = self.row_mut(call);
        (row.state, row.attempt, row.class) = (transition.state(), transition.attempt(), None);
        match &transition.change {
            Change::Wait { backlog, check_at, .. } => {
                let at = if backlog.is_retry() { now } else { row.submitted_at };
                (row.wake_at, row.backlog, row.backlog_at) = (since(*check_at), Some(*backlog), at);
            }
            Change::Extend { deadline_at } => {
                (row.deadline_at, row.wake_at) = (since(*deadline_at), since(*deadline_at));
            }
            Change::Postpone { wake_at } => row.wake_at = since(*wake_at),
            Change::RequestCancel => row.cancel_requested = true,
            Change::Retry { due_at, .. } => row.wake_at = since(*due_at),
            Change::Answer { attempt, .. } => {
                row.class = attempt.result.as_ref().err().map(|failure| failure.class);
            }
            Change::End { failure, .. } => {
                (row.class, row.backlog) = (failure.as_ref().map(|failure| failure.class), None);
            }
        }
        self.audit(transition, &before);
        self.notify_task(call, &transition.change);
        Some(self.row(call).facts(call, now))
    }

    /// A call of a task that ended or will be retried adds an item to the inbox of its task.
    fn notify_task(&mut self, call: CallNo, change: &Change) {
        let Some(task_call) = self.row(call).task else { return };
        let item = match change {
            Change::Answer { .. } | Change::End { .. } => InboxItem::Ended(self.ended_call(call, task_call)),
            Change::Retry { due_at, .. } => InboxItem::Retrying {
                call: self.row(call).id,
                turn: task_call.turn,
                call_index: task_call.call_index,
                tool: String::new(),
                attempt: self.row(call).attempt,
                class: ErrorClass::Unavailable,
                message: String::new(),
                next_at: *due_at,
            },
            _ => return,
        };
        self.tables.add_to_inbox(task_no(task_call.task), item);
    }

    fn audit(&mut self, transition: &Transition, before: &CallRow) {
        let Some(attempt) = transition.ended_attempt() else { return };
        let class = attempt.result.as_ref().err().map(|failure| failure.class);
        let job = Job { call: call_no(transition.call), attempt: transition.attempt() };
        if self.tables.attempts.iter().any(|row| row.job == job) {
            return self.report_violation(Invariant::OneOutcome, || {
                format!("attempt {} of call {} ends twice", job.attempt, job.call)
            });
        }
        let (worker, started_at, ended_at) = (before.worker, before.started_at, self.now);
        self.tables.attempts.push(AttemptRow { job, worker, started_at, ended_at, class });
    }
}

fn meets(row: &CallRow, guard: &Guard) -> bool {
    row.state == guard.state
        && row.attempt == guard.attempt
        && guard.worker.as_ref().is_none_or(|worker| row.worker == process_of(worker))
        && guard.claim.is_none_or(|claim| claim_id(row.claim) == claim)
        && guard.cancel_requested.is_none_or(|cancel| row.cancel_requested == cancel)
}
