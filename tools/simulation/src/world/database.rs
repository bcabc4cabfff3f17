//! Postgres: each function here is one statement, or one transaction, with the guards of `crates/store/sql`.

use redial_engine::{Event, Next, step};
use redial_proto::{CallState, ErrorClass};

use super::{
    LEASE, World,
    rows::{AttemptRow, CallNo, Claim, Grant, Job, Ms, Process, Row, What, time},
};
use crate::{Bug, Invariant};

/// How a transaction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is committed, and the dispatcher acts on it.
    Commit,
    /// It is not, and the dispatcher knows.
    Vanish,
    /// It is committed, but the dispatcher gets an error.
    Unknown,
    /// The dispatcher dies before the commit.
    DieBefore,
    /// The dispatcher dies right after the commit.
    DieAfter,
}

impl Fate {
    /// Nineteen of twenty go well.
    pub(super) const fn of(pick: u32) -> Self {
        match pick >> 24 {
            243..=246 => Self::Vanish,
            247..=250 => Self::Unknown,
            251 | 252 => Self::DieBefore,
            253..=255 => Self::DieAfter,
            _ => Self::Commit,
        }
    }

    pub(super) const fn is_committed(self) -> bool {
        matches!(self, Self::Commit | Self::Unknown | Self::DieAfter)
    }
}

/// What a call must still be for a change to happen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) state: CallState,
    pub(super) attempt: u32,
    pub(super) worker: Option<Process>,
    pub(super) claim: Option<Claim>,
    pub(super) cancel_requested: Option<bool>,
}

/// A decision to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) call: CallNo,
    pub(super) expected: Expected,
    pub(super) state: CallState,
    pub(super) attempt: u32,
    pub(super) wake_at: Option<Ms>,
    pub(super) published_at: Option<Ms>,
    pub(super) publish: bool,
    pub(super) cancel: bool,
    pub(super) class: Option<ErrorClass>,
    /// How the attempt ended, if it did: the error is why it failed.
    pub(super) ended: Option<Result<(), ErrorClass>>,
}

impl World {
    pub(super) fn row(&self, call: CallNo) -> Row {
        self.tables.calls[usize::from(call)]
    }

    fn row_mut(&mut self, call: CallNo) -> &mut Row {
        &mut self.tables.calls[usize::from(call)]
    }

    /// `submit.sql`: whatever is on record already is left as it is.
    pub(super) fn insert(&mut self, call: CallNo) -> bool {
        let now = self.now;
        let row = self.row_mut(call);
        if row.exists {
            return false;
        }
        *row = Row {
            exists: true,
            deadline_at: now + row.deadline_ms,
            wake_at: now + row.deadline_ms.min(10_000),
            publish_no: 1,
            published_at: now,
            ..*row
        };
        true
    }

    /// `claim.sql`: the only place where an execution is allowed.
    pub(super) fn claim(&mut self, worker: Process, claim: Claim, mut job: Job, deliveries: u32) -> Option<Job> {
        let row = self.row(job.call);
        if !row.exists {
            return None;
        }
        if self.has(Bug::DeliveryCountAsAttempt) {
            job.attempt = deliveries;
        }
        let again =
            row.state == CallState::Running && row.attempt == job.attempt && row.claim == claim && row.worker == worker;
        if again {
            self.row_mut(job.call).lease_until = self.now + LEASE;
            return Some(job);
        }
        if !self.may_grant(&row, claim, job) {
            return None;
        }
        self.check_grant(&row, job);
        let now = self.now;
        let row = self.row_mut(job.call);
        *row = Row {
            state: CallState::Running,
            attempt: job.attempt,
            claim,
            worker,
            started_at: now,
            lease_until: now + LEASE,
            wake_at: row.wake_at.min(now + LEASE),
            ..*row
        };
        Some(job)
    }

    fn may_grant(&self, row: &Row, claim: Claim, job: Job) -> bool {
        let decided = step(&row.call(row.max_attempts), &Event::Claim { attempt: job.attempt }, time(self.now), 0.0);
        match self.bug {
            Some(Bug::ClaimWithoutCompare) => !row.state.is_terminal(),
            Some(Bug::DeliveryCountAsAttempt) => row.state == CallState::Ready,
            Some(Bug::CancelNotCheckedAtClaim) if row.state == CallState::Cancelled => row.attempt + 1 == job.attempt,
            Some(Bug::ReleaseWithoutGivingUp) => decided.next == Next::Running,
            _ => decided.next == Next::Running && row.claim != claim,
        }
    }

    fn check_grant(&mut self, row: &Row, job: Job) {
        if self.ledger.cancelled >> job.call & 1 == 1 {
            self.accuse(Invariant::NothingAfterCancel, || {
                format!("attempt {} of call {} is granted", job.attempt, job.call)
            });
        }
        if row.state.is_terminal() {
            self.accuse(Invariant::EndedStaysEnded, || format!("call {} is {} and is granted", job.call, row.state));
        }
        if job.attempt > row.max_attempts {
            let most = row.max_attempts;
            self.accuse(Invariant::AttemptsWithinMax, || {
                format!("attempt {} of {most}, call {}", job.attempt, job.call)
            });
        }
    }

    /// `renew`: extends the leases of what a worker still holds; true if its user wants it stopped.
    pub(super) fn renew(&mut self, worker: Process, job: Job) -> Option<bool> {
        let now = self.now;
        let row = self.row_mut(job.call);
        let held = row.attempt == job.attempt && row.state == CallState::Running && row.worker == worker;
        held.then(|| {
            row.lease_until = now + LEASE;
            row.cancel_requested
        })
    }

    /// `give_up`: a claim that nobody waits for is not granted any more. Only the last one is remembered, and only while
    /// the call is free.
    pub(super) fn give_up(&mut self, grant: Grant) {
        if !self.ledger.given_up.contains(&grant) {
            self.ledger.given_up.push(grant);
        }
        if self.has(Bug::ReleaseWithoutGivingUp) {
            return;
        }
        let row = self.row_mut(grant.job.call);
        if row.state == CallState::Ready && row.attempt + 1 == grant.job.attempt {
            row.claim = grant.claim;
        }
    }

    /// `apply.sql`: changes a call and writes the attempt that this ends, if the call is still as expected.
    pub(super) fn apply(&mut self, change: &Change) -> bool {
        let before = self.row(change.call);
        let wanted = &change.expected;
        let as_expected = before.exists
            && before.state == wanted.state
            && before.attempt == wanted.attempt
            && wanted.worker.is_none_or(|worker| before.worker == worker)
            && wanted.claim.is_none_or(|claim| before.claim == claim)
            && wanted.cancel_requested.is_none_or(|cancel| before.cancel_requested == cancel);
        if !as_expected {
            return false;
        }
        if before.state.is_terminal() {
            let found = || format!("call {} was {} and becomes {}", change.call, before.state, change.state);
            self.accuse(Invariant::EndedStaysEnded, found);
        }
        let now = self.now;
        let ends = change.state.is_terminal();
        let row = self.row_mut(change.call);
        row.state = change.state;
        row.attempt = change.attempt;
        row.wake_at = change.wake_at.unwrap_or(row.wake_at);
        row.publish_no += u32::from(change.publish);
        row.published_at = if change.publish { now } else { change.published_at.unwrap_or(row.published_at) };
        row.cancel_requested |= change.cancel;
        row.class = change.class;
        self.audit(change, &before);
        let told = ends || (change.ended.is_some() && change.state == CallState::RetryWait);
        if let (true, Some(place)) = (told, before.place) {
            self.tables.tell(place.task, if ends { What::Ended(change.call) } else { What::Retrying });
        }
        true
    }

    fn audit(&mut self, change: &Change, before: &Row) {
        let Some(ended) = change.ended else { return };
        let class = ended.err();
        let job = Job { call: change.call, attempt: before.attempt };
        if self.tables.attempts.iter().any(|row| row.job == job) {
            return self
                .accuse(Invariant::OneOutcome, || format!("attempt {} of call {} ends twice", job.attempt, job.call));
        }
        let (worker, started_at, ended_at) = (before.worker, before.started_at, self.now);
        self.tables.attempts.push(AttemptRow { job, worker, started_at, ended_at, class });
    }
}
