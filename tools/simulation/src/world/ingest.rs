//! Operations of a dispatcher that read a call first and change it later: results, releases, cancels. Anything can
//! happen in between, so an operation whose guard did not hold is planned again.

use redial_engine::call::{CallEvent, succeeded};
use redial_proto::{CallState, GrantRef};
use redial_records::Transition;

use super::{
    dispatcher::{Cancel, Operation, OperationKind},
    ids::{call_id, claim_id, worker_id},
    messages::{ControlMessage, Release, Report, ResultMessage},
    state::World,
    tables::{AttemptRow, CallRow},
    transaction::CommitOutcome,
};
use crate::{Invariant, Mutation};

/// What a step did to an operation.
#[expect(clippy::large_enum_variant, reason = "a box for each step would cost more than the copy")]
enum Progress {
    /// The operation needs another step.
    More(Operation),
    /// The operation is finished.
    Done,
    /// The dispatcher gave the operation up, or died.
    Dropped,
}

impl World {
    /// Runs one step of an operation of a dispatcher.
    pub(super) fn step(&mut self, d: usize, n: usize, commit: CommitOutcome) {
        // In no particular order, and after an outage the list is long.
        let operation = self.dispatchers[d].operations.swap_remove(n);
        let process = self.dispatchers[d].process;
        let progress = match operation.kind {
            OperationKind::Ingest(message) => self.ingest(d, operation, &message, commit),
            OperationKind::Release(release) => self.release(d, operation, release, commit),
            OperationKind::Cancel(cancel) => self.cancel(d, operation, cancel, commit),
        };
        match progress {
            Progress::More(operation) if self.dispatchers[d].process == process => {
                self.dispatchers[d].operations.push(operation);
            }
            Progress::Done => self.reply_to_release(&operation.kind),
            _ => {}
        }
    }

    fn read_call(&mut self, d: usize, operation: Operation, commit: CommitOutcome) -> Progress {
        let call = operation.kind.call();
        match self.transaction(d, commit, |world| world.row(call)) {
            Some(row) => Progress::More(Operation { seen: Some(row), ..operation }),
            None => Progress::More(operation),
        }
    }

    // ---- Results ----

    /// Ingests a report; tries again until the database answers.
    fn ingest(&mut self, d: usize, operation: Operation, message: &ResultMessage, commit: CommitOutcome) -> Progress {
        if self.has(Mutation::AckBeforeCommit) {
            self.acknowledge(message);
        }
        let transition = match &operation.seen {
            None if message.report.outcome.class.is_none() => Some(success(&message.report)),
            None => return self.read_call(d, operation, commit),
            Some(row) => self.result(row, &message.report),
        };
        let Some(transition) = transition else { return self.record_late(d, operation, message, commit) };
        match self.transaction(d, commit, |world| world.apply(&transition)) {
            Some(Some(facts)) => {
                self.carry_out_all(d, &transition, &facts);
                self.acknowledge(message);
                Progress::Done
            }
            Some(None) => self.read_call(d, operation, CommitOutcome::Committed),
            // It is unknown whether the transaction was committed, so the operation starts again.
            None if self.has(Mutation::AckBeforeCommit) => Progress::Dropped,
            None => Progress::More(Operation { seen: None, ..operation }),
        }
    }

    /// The transition that a report causes; `None` if it came too late.
    fn result(&mut self, row: &CallRow, report: &Report) -> Option<Transition> {
        let fits = row.attempt == report.job.attempt && row.worker == report.worker && row.claim == report.claim;
        let fits = fits || (self.has(Mutation::NoFenceAtIngest) && row.state == CallState::Running);
        let failure = self.failure(&report.outcome);
        let event = match &failure {
            Some(failure) => CallEvent::Failed { duration_ms: 1, failure },
            None => CallEvent::Succeeded { duration_ms: 1, output: "" },
        };
        let mut seen = *row;
        if self.has(Mutation::ResultIngestedTwice) && fits {
            seen.state = CallState::Running;
        }
        let random = f64::from(self.seq % 8) / 8.0;
        let mut transition = self.plan(report.job.call, &seen, &event, random).filter(|_| fits)?;
        if self.has(Mutation::CancelNotGuardedAtIngest) {
            transition.guard.cancel_requested = None;
        }
        if self.has(Mutation::ResultIngestedTwice) {
            transition.guard.state = row.state;
        }
        Some(transition)
    }

    /// Records a late result once, without changing the call.
    fn record_late(
        &mut self,
        d: usize,
        operation: Operation,
        message: &ResultMessage,
        commit: CommitOutcome,
    ) -> Progress {
        let recorded = self.transaction(d, commit, |world| {
            let Report { job, claim: _, worker, outcome } = message.report;
            let same = |row: &AttemptRow| (row.job, row.worker, row.class) == (job, worker, outcome.class);
            let known = world.tables.attempts.iter().any(same) || world.tables.late.contains(&(job, worker));
            if !known {
                world.tables.late.push((job, worker));
            }
        });
        match recorded {
            Some(()) => {
                self.log(|| format!("    the result of call {} came too late", message.report.job.call));
                self.acknowledge(message);
                Progress::Done
            }
            None => Progress::More(operation),
        }
    }

    fn acknowledge(&mut self, message: &ResultMessage) {
        let ResultMessage { seq, report: Report { job, worker, .. }, .. } = *message;
        if self.nats_up {
            self.results.retain(|message| message.seq != seq);
        }
        let known = self.tables.attempts.iter().any(|row| row.job == job && row.worker == worker)
            || self.tables.late.contains(&(job, worker));
        if !known {
            let found = || format!("the report on attempt {} of call {} is not on record", job.attempt, job.call);
            // With this mutation, a later invariant must detect the loss.
            if !self.has(Mutation::AckBeforeCommit) {
                self.report_violation(Invariant::AcknowledgedReportIsKept, found);
            }
        }
        self.send(ControlMessage::ReportRecorded { worker, job });
    }

    // ---- Releases ----

    fn release(
        &mut self,
        d: usize,
        operation: Operation,
        Release { worker, grant }: Release,
        commit: CommitOutcome,
    ) -> Progress {
        if !operation.given_up {
            let needed = !self.has(Mutation::ReleaseWithoutGivingUp);
            let done = self.transaction(d, commit, |world| {
                if needed {
                    world.give_up(grant);
                }
            });
            return done.map_or(Progress::Dropped, |()| Progress::More(Operation { given_up: true, ..operation }));
        }
        let Some(row) = &operation.seen else { return self.read_call(d, operation, commit) };
        let any_claim = self.has(Mutation::ReleaseWithoutClaim);
        let held = row.worker == worker && row.attempt == grant.job.attempt && (row.claim == grant.claim || any_claim);
        let transition = self.plan(grant.job.call, row, &CallEvent::Released, 0.0).filter(|_| held);
        let Some(mut transition) = transition else { return Progress::Done };
        if any_claim {
            transition.guard.claim = None;
        }
        match self.transaction(d, commit, |world| world.apply(&transition)) {
            Some(Some(facts)) => {
                self.carry_out_all(d, &transition, &facts);
                Progress::Done
            }
            Some(None) if self.has(Mutation::ReleaseNotPlannedAgain) => Progress::Done,
            Some(None) => Progress::More(Operation { seen: None, ..operation }),
            None => Progress::Dropped,
        }
    }

    fn reply_to_release(&mut self, kind: &OperationKind) {
        if let OperationKind::Release(release) = *kind {
            self.send(ControlMessage::Released(release));
        }
    }

    // ---- Cancels ----

    fn cancel(
        &mut self,
        d: usize,
        operation: Operation,
        Cancel { call, for_client }: Cancel,
        commit: CommitOutcome,
    ) -> Progress {
        let Some(row) = &operation.seen else { return self.read_call(d, operation, commit) };
        let Some(transition) = self.plan(call, row, &CallEvent::Cancel, 0.0) else { return Progress::Done };
        match self.transaction(d, commit, |world| world.apply(&transition)) {
            Some(Some(facts)) => {
                self.carry_out_all(d, &transition, &facts);
                if for_client {
                    self.log(|| format!("    the cancel of call {call} is acknowledged"));
                    self.ledger.cancelled |= 1 << call;
                }
                Progress::Done
            }
            Some(None) => Progress::More(Operation { seen: None, ..operation }),
            None => Progress::Dropped,
        }
    }
}

fn success(report: &Report) -> Transition {
    let (call, attempt, claim) = (call_id(report.job.call), report.job.attempt, claim_id(report.claim));
    succeeded(GrantRef { call, attempt, claim }, &worker_id(report.worker), 1, String::new())
}
