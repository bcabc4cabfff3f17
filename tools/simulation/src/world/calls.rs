//! Guarded changes of calls: whether one happens is the engine's word, and the guard of its transition.

use redial_engine::{
    Time,
    call::{grants, renews, takes_back},
    publish::FIRST_CHECK_MS,
};
use redial_proto::{CallId, CallState, ErrorClass, GrantRef, JobRef};
use redial_records::{self as records, Backlog, CallFacts, CallRecord, Change, Guard, InboxItem, Transition};

use super::{
    CONSUMER, LEASE, Process, World, named,
    tables::{AttemptRow, CallRow, InboxRow},
    task_no,
    worker::CLAIMS_LAST,
    worker_id,
};
use crate::{Invariant, Mutation};

/// What became of the lease of a grant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Renewal {
    /// It is not the worker's any more.
    Lost,
    /// It stays as it is, and perhaps its user wants it stopped.
    Locked { cancel: bool },
    /// It lasts until then, and perhaps its user wants it stopped.
    Renewed { cancel: bool, until: Time },
}

impl World {
    /// Writes a call unless it is on record already. Unless its job is published, it waits in the backlog.
    pub(super) fn insert(&mut self, call: CallId, published: bool) -> bool {
        let now = self.now;
        let row = self.call_mut(call);
        if row.exists {
            return false;
        }
        let ms = |ms: u64| chrono::TimeDelta::milliseconds(ms.cast_signed());
        row.exists = true;
        row.submitted_at = now;
        row.record.deadline_at = now + ms(row.deadline_ms);
        row.wake_at = now + ms(if published { row.deadline_ms.min(FIRST_CHECK_MS) } else { row.deadline_ms });
        row.record.publish_no = u32::from(published);
        row.record.published_at = published.then_some(now);
        row.record.consumer = published.then(|| CONSUMER.to_owned());
        row.record.backlog = (!published).then_some(Backlog::Job);
        true
    }

    /// Grants an attempt, or renews the lease of one that this claim was granted before: the only place that allows an
    /// execution.
    pub(super) fn claim(&mut self, worker: Process, grant: GrantRef, not_after: Time) -> bool {
        let job = grant.job_ref();
        let row = self.call(job.call).clone();
        let record = &row.record;
        let not_after = if self.has(Mutation::ClaimsNeverEnd) { self.now } else { not_after };
        let (worker_name, tool) = (worker_id(worker), record.tool.clone());
        let pending = records::Claim { job, claim: grant.claim, worker: worker_name, tool, not_after };
        let granted = grants(record, &pending, self.now);
        let granted_before = granted && record.state == CallState::Running;
        if !row.exists || !granted || self.locked.contains(&job.call) {
            return false;
        }
        let until = self.now + LEASE;
        if granted_before {
            self.call_mut(job.call).record.lease_until = Some(until);
            return true;
        }
        self.check_grant(&row, worker, grant);
        let row = self.call_mut(job.call);
        row.before_grant = Some(Box::new((row.record.clone(), row.wake_at)));
        self.set_running(worker, grant);
        true
    }

    /// Lets the call run under this grant.
    fn set_running(&mut self, worker: Process, grant: GrantRef) {
        let (now, until) = (self.now, self.now + LEASE);
        let row = self.call_mut(grant.call);
        row.wake_at = row.wake_at.min(until);
        row.record.state = CallState::Running;
        row.record.attempt = grant.attempt;
        (row.record.claim, row.record.worker) = (Some(grant.claim), Some(worker_id(worker)));
        (row.record.started_at, row.record.lease_until) = (Some(now), Some(until));
        row.record.backlog = None;
        self.executions.iter_mut().filter(|one| one.grant == grant).for_each(|one| one.lost = false);
    }

    /// Falls back to what was on record before the last grant of a call, as a failover does.
    pub(super) fn lose_grant(&mut self, n: usize) {
        let Some(row) = self.calls.get_mut(n) else { return };
        let (Some(before), Some(grant)) = (row.before_grant.take(), row.record.grant()) else { return };
        (row.record, row.wake_at) = *before;
        self.lost.push(grant);
        self.executions.iter_mut().filter(|one| one.grant == grant).for_each(|one| one.lost = true);
        self.log(|| format!("a failover loses the grant of attempt {}", named(grant.job_ref())));
    }

    /// Takes back a grant that was lost; `None` if it was not, false if the call is locked. The worker held it then.
    pub(super) fn take_back(&mut self, worker: Process, grant: GrantRef, held_at: Time) -> Option<bool> {
        let record = &self.call(grant.call).record;
        let is_lost = if self.has(Mutation::ReleasedIsTakenBack) {
            takes_back(&CallRecord { claim: None, started_at: None, ..record.clone() }, grant, Some(held_at))
        } else {
            takes_back(record, grant, Some(held_at))
        };
        if !is_lost {
            return None;
        }
        if self.locked.contains(&grant.call) {
            return Some(false);
        }
        if !self.lost.contains(&grant) {
            let found = || format!("attempt {} is taken back, and its grant was not lost", named(grant.job_ref()));
            self.report_violation(Invariant::OnlyLostIsTakenBack, found);
        }
        self.log(|| format!("    attempt {} is taken back", named(grant.job_ref())));
        self.set_running(worker, grant);
        Some(true)
    }

    fn check_grant(&mut self, row: &CallRow, worker: Process, grant: GrantRef) {
        let (state, most, job) = (row.record.state, row.max_attempts(), grant.job_ref());
        let waits = self.claims.iter().any(|claim| claim.worker == worker && claim.claim == grant.claim);
        let died = self.gone.iter().find(|(gone, _)| *gone == worker);
        if died.map_or(!waits, |(_, heard_at)| self.now > *heard_at + CLAIMS_LAST) {
            self.report_violation(Invariant::ClaimsEnd, || format!("attempt {} is granted to nobody", named(job)));
        }
        if self.cancelled.contains(&job.call) {
            self.report_violation(Invariant::NothingAfterCancel, || format!("attempt {} is granted", named(job)));
        }
        if state.is_terminal() {
            let found = || format!("attempt {} is granted, and the call is {state}", named(job));
            self.report_violation(Invariant::EndedStaysEnded, found);
        }
        if job.attempt > most {
            self.report_violation(Invariant::AttemptsWithinMax, || format!("attempt {} of {most}", named(job)));
        }
    }

    /// Extends the lease of a grant that the worker still holds, or takes it back, unless its call is locked. The worker held it then.
    pub(super) fn renew(&mut self, worker: Process, grant: GrantRef, held_at: Time) -> Renewal {
        if !self.has(Mutation::LostGrantStaysLost) && self.take_back(worker, grant, held_at) == Some(false) {
            return Renewal::Locked { cancel: false };
        }
        let (until, locked) = (self.now + LEASE, self.locked.contains(&grant.call));
        let (lost, renewed) = (self.has(Mutation::LockedIsLost), self.has(Mutation::LockedIsRenewed));
        let row = self.call_mut(grant.call);
        if !renews(&row.record, &worker_id(worker), grant) || (locked && lost) {
            if takes_back(&row.record, grant, Some(held_at)) {
                let found =
                    || format!("attempt {} is called lost, and its call is ready for it", named(grant.job_ref()));
                self.report_violation(Invariant::OnlyLostIsStopped, found);
            }
            return Renewal::Lost;
        }
        if locked && !renewed {
            return Renewal::Locked { cancel: row.record.cancel_requested };
        }
        row.record.lease_until = Some(if locked { row.record.lease_until.unwrap_or(until) } else { until });
        Renewal::Renewed { cancel: row.record.cancel_requested, until }
    }

    /// Changes a call and records the attempt that this ends, if the call still meets the guard.
    pub(super) fn apply(&mut self, transition: &Transition) -> Option<CallFacts> {
        let (now, call) = (self.now, transition.call);
        let before = self.call(call).clone();
        if !before.exists || !meets(&before, &transition.guard) {
            return None;
        }
        if before.record.state.is_terminal() {
            let found = || format!("{call} was {} and becomes {}", before.record.state, transition.state());
            self.report_violation(Invariant::EndedStaysEnded, found);
        }
        let row = self.call_mut(call);
        row.before_grant = None;
        (row.record.state, row.record.attempt, row.class) = (transition.state(), transition.attempt(), None);
        match &transition.change {
            Change::Wait { backlog, check_at, .. } => {
                (row.wake_at, row.record.backlog) = (*check_at, Some(*backlog));
            }
            Change::Extend { deadline_at } => (row.record.deadline_at, row.wake_at) = (*deadline_at, *deadline_at),
            Change::Postpone { wake_at } => row.wake_at = *wake_at,
            Change::RequestCancel => row.record.cancel_requested = true,
            Change::Retry { due_at, .. } => row.wake_at = *due_at,
            Change::Answer { attempt, .. } => {
                row.class = attempt.result.as_ref().err().map(|failure| failure.class);
            }
            Change::End { failure, .. } => {
                (row.class, row.record.backlog) = (failure.as_ref().map(|failure| failure.class), None);
            }
        }
        if row.record.state != CallState::Running {
            row.record.lease_until = None;
        }
        let facts = row.facts(now);
        self.record_attempt(transition, &before);
        self.notify_task(call, &transition.change);
        Some(facts)
    }

    /// Adds an item to the inbox of a call's task, if it ended or will be retried.
    fn notify_task(&mut self, call: CallId, change: &Change) {
        let row = self.call(call);
        let Some(of) = row.task else { return };
        let item = match change {
            Change::Answer { .. } | Change::End { .. } => InboxItem::Ended(self.ended_call(row, of)),
            Change::Retry { due_at, .. } => InboxItem::Retrying {
                call,
                turn: of.turn,
                call_index: of.call_index,
                tool: String::new(),
                attempt: row.record.attempt,
                class: ErrorClass::Unavailable,
                message: String::new(),
                next_at: *due_at,
            },
            _ => return,
        };
        self.add_to_inbox(task_no(of.task), item);
    }

    pub(super) fn add_to_inbox(&mut self, task: usize, item: InboxItem) {
        let id = self.new_number();
        self.inbox.push(InboxRow { id, task, item });
    }

    fn record_attempt(&mut self, transition: &Transition, before: &CallRow) {
        let Some(attempt) = transition.ended_attempt() else { return };
        let class = attempt.result.as_ref().err().map(|failure| failure.class);
        let job = JobRef { call: transition.call, attempt: transition.attempt() };
        if self.attempts.iter().any(|row| row.job == job) {
            return self.report_violation(Invariant::OneOutcome, || format!("attempt {} ends twice", named(job)));
        }
        let worker = before.record.worker.as_ref().and_then(|worker| worker.as_str().parse().ok()).unwrap_or(0);
        let started_at = before.record.started_at.unwrap_or_default();
        self.attempts.push(AttemptRow { job, worker, started_at, ended_at: self.now, class });
    }
}

fn meets(row: &CallRow, guard: &Guard) -> bool {
    let record = &row.record;
    record.state == guard.state
        && record.attempt == guard.attempt
        && guard.worker.as_ref().is_none_or(|worker| record.worker.as_ref() == Some(worker))
        && guard.claim.is_none_or(|claim| record.claim == Some(claim))
        && guard.cancel_requested.is_none_or(|cancel| record.cancel_requested == cancel)
}
