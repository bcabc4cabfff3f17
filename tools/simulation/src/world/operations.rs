//! Operations of a dispatcher that read a call first and change it later: results, releases, cancels. Anything can
//! happen in between, so an operation whose guard did not hold is planned again.

use chrono::TimeDelta;
use redial_engine::call::{CallEvent, succeeded, takes_back};
use redial_proto::{CallId, CallState, GrantRef};
use redial_records::Transition;

use super::{
    Process, ResultMessage, World, dispatcher::CommitOutcome, failure, job_of, named, tables::CallRow, worker::Report,
    worker_id,
};
use crate::{Invariant, Mutation};

/// An operation that takes more than one transaction.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    kind: OperationKind,
    /// The call as the operation last read it.
    seen: Option<CallRow>,
}

/// Why an operation reads and changes a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum OperationKind {
    Ingest(ResultMessage),
    /// A worker gives an attempt back that it was granted, or asked for.
    Release {
        worker: Process,
        grant: GrantRef,
    },
    /// For a client that waits for the acknowledgement, or for the call's task.
    Cancel {
        call: CallId,
        for_client: bool,
    },
}

/// A report of a call that is locked is delivered again after this.
const LATER: TimeDelta = TimeDelta::seconds(5);

impl OperationKind {
    const fn call(&self) -> CallId {
        match self {
            Self::Ingest(message) => message.report.grant.call,
            Self::Release { grant, .. } => grant.call,
            Self::Cancel { call, .. } => *call,
        }
    }
}

impl Operation {
    pub(super) const fn new(kind: OperationKind) -> Self {
        Self { kind, seen: None }
    }
}

impl World {
    /// Runs one step of an operation of a dispatcher.
    pub(super) fn step(&mut self, d: usize, n: usize, commit: CommitOutcome) {
        // In no particular order, and after an outage the list is long.
        let operation = self.dispatchers[d].operations.swap_remove(n);
        let process = self.dispatchers[d].process;
        if let Some(operation) = self.stepped(d, operation, commit)
            && self.dispatchers[d].process == process
        {
            self.dispatchers[d].operations.push(operation);
        }
    }

    /// Returns the operation after a step; `None` if it is finished or given up.
    fn stepped(&mut self, d: usize, operation: Operation, commit: CommitOutcome) -> Option<Operation> {
        let Operation { kind, seen } = operation;
        if self.locked.contains(&kind.call()) {
            // A report comes again; whoever sent another request asks again.
            if let OperationKind::Ingest(ResultMessage { number, .. }) = kind {
                let again = self.now + LATER;
                self.results.iter_mut().filter(|one| one.number == number).for_each(|one| one.redeliver_at = again);
            }
            return None;
        }
        if let (Some(row), OperationKind::Ingest(message)) = (&seen, kind)
            && self.is_lost(row, message.report.grant)
        {
            let (grant, worker) = (message.report.grant, message.report.worker);
            let seen = self.transaction(d, commit, |world| {
                world.take_back(worker, grant, world.now);
                world.read(kind)
            });
            return Some(Operation { kind, seen });
        }
        let transition = match (&seen, kind) {
            (None, OperationKind::Ingest(message)) if message.report.outcome.class.is_none() => {
                Some(succeeded(message.report.grant, &worker_id(message.report.worker), 1, String::new()))
            }
            (None, _) => {
                let seen = self.transaction(d, commit, |world| world.read(kind));
                return Some(Operation { kind, seen });
            }
            (Some(row), _) => self.planned(kind, row),
        };
        let Some(transition) = transition else {
            let recorded = match kind {
                OperationKind::Ingest(message) => {
                    self.transaction(d, commit, |world| world.record_late(&message.report)).is_some()
                }
                _ => true,
            };
            if recorded {
                self.finished(kind);
            }
            return (!recorded).then_some(Operation { kind, seen });
        };
        match self.transaction(d, commit, |world| world.apply(&transition)) {
            Some(Some(facts)) => {
                self.carry_out_all(d, &transition, &facts);
                if let OperationKind::Cancel { call, for_client: true } = kind {
                    self.log(|| "    the cancel is acknowledged".to_owned());
                    self.cancelled.push(call);
                }
                self.finished(kind);
                None
            }
            Some(None) => match kind {
                OperationKind::Release { .. } if self.has(Mutation::ReleaseNotPlannedAgain) => {
                    self.finished(kind);
                    None
                }
                OperationKind::Ingest(_) => Some(Operation { kind, seen: Some(self.read(kind)) }),
                _ => Some(Operation { kind, seen: None }),
            },
            // It is unknown whether the transaction was committed: a report is taken up again, the others are sent again.
            None => matches!(kind, OperationKind::Ingest(_)).then_some(Operation { kind, seen: None }),
        }
    }

    /// True if the record lost the grant of a report, so that it has to be taken back first.
    fn is_lost(&mut self, row: &CallRow, grant: GrantRef) -> bool {
        // Whoever reports an attempt held it until then.
        let is_lost = takes_back(&row.record, grant, Some(self.now));
        if is_lost && self.has(Mutation::LostReportIsLate) {
            let found = || format!("the record lost attempt {}, and its report is late", named(job_of(grant)));
            self.report_violation(Invariant::AcknowledgedReportIsKept, found);
            return false;
        }
        is_lost
    }

    fn read(&self, kind: OperationKind) -> CallRow {
        self.call(kind.call()).clone()
    }

    /// Returns the transition that an operation causes; `None` if it changes nothing, or came too late.
    fn planned(&self, kind: OperationKind, row: &CallRow) -> Option<Transition> {
        let holds = |worker: Process, grant: GrantRef, any_claim: bool| {
            let same_claim = any_claim || row.record.claim == Some(grant.claim);
            row.record.attempt == grant.attempt && row.record.worker == Some(worker_id(worker)) && same_claim
        };
        match kind {
            OperationKind::Ingest(ResultMessage { report: Report { grant, worker, outcome }, number, .. }) => {
                let unfenced = self.has(Mutation::NoFenceAtIngest) && row.record.state == CallState::Running;
                if !holds(worker, grant, false) && !unfenced {
                    return None;
                }
                let failure = failure(outcome);
                let event = match &failure {
                    Some(failure) => CallEvent::Failed { duration_ms: 1, failure },
                    None => CallEvent::Succeeded { duration_ms: 1, output: "" },
                };
                let mut transition = self.plan(row, &event, f64::from(number % 8) / 8.0)?;
                if self.has(Mutation::CancelNotGuardedAtIngest) {
                    transition.guard.cancel_requested = None;
                }
                Some(transition)
            }
            OperationKind::Release { worker, grant } => {
                let any_claim = self.has(Mutation::ReleaseWithoutClaim);
                let mut transition =
                    self.plan(row, &CallEvent::Released, 0.0).filter(|_| holds(worker, grant, any_claim))?;
                if any_claim {
                    transition.guard.claim = None;
                }
                Some(transition)
            }
            OperationKind::Cancel { .. } => self.plan(row, &CallEvent::Cancel, 0.0),
        }
    }

    /// Records a late result once, without changing the call.
    fn record_late(&mut self, report: &Report) {
        self.log(|| "    the result came too late".to_owned());
        if !self.is_on_record(report) {
            self.late.push((job_of(report.grant), report.worker));
        }
    }

    fn is_on_record(&self, report: &Report) -> bool {
        let (job, worker) = (job_of(report.grant), report.worker);
        self.attempts.iter().any(|row| row.job == job && row.worker == worker) || self.late.contains(&(job, worker))
    }

    /// Tells whoever waits for the end of an operation.
    fn finished(&mut self, kind: OperationKind) {
        match kind {
            OperationKind::Ingest(message) => self.acknowledge(&message),
            OperationKind::Release { worker, grant } => {
                let record = &self.call(grant.call).record;
                let is_held = record.state == CallState::Running && record.grant() == Some(grant);
                // A record that has lost a grant does not know that it was released, and takes it back from an old heartbeat.
                if is_held && !self.lost.contains(&grant) {
                    let found = || format!("attempt {} of {} was not given back", grant.attempt, grant.call);
                    self.report_violation(Invariant::AcknowledgedReportIsKept, found);
                }
                self.released(worker, grant);
            }
            OperationKind::Cancel { .. } => {}
        }
    }

    fn acknowledge(&mut self, message: &ResultMessage) {
        let ResultMessage { number, report, .. } = *message;
        if !self.is_on_record(&report) {
            let found = || format!("the report on attempt {} is not on record", named(job_of(report.grant)));
            self.report_violation(Invariant::AcknowledgedReportIsKept, found);
        }
        if self.nats_up {
            self.results.retain(|message| message.number != number);
        }
        self.recorded(report.worker, report.grant);
    }
}
