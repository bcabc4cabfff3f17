//! Periodic checks of a dispatcher: what is due, and whether the streams still exist.

use std::time::Duration;

use redial_engine::{
    outage::Observation,
    sweep::{Conditions, plan_due},
};
use redial_records::{CallRecord, Transition};

use super::{
    clock::{LEASE, Ms, duration, time},
    dispatcher::Dispatcher,
    ids::{CallNo, call_no},
    state::World,
    tables::{CallRow, JobStream},
    transaction::CommitOutcome,
};
use crate::Mutation;

/// Jobs published up to this long before the last successful check may have been lost, in ms.
const BEFORE: i64 = 10_000;

impl World {
    /// Sweeps the due calls in one transaction, then carries out the effects.
    pub(super) fn sweep(&mut self, d: usize, pick: u32, commit: CommitOutcome) {
        self.begin_sweep(d);
        if self.has(Mutation::SweeperOff) || !self.postgres_up || !self.something_is_due() {
            return;
        }
        self.log(|| format!("dispatcher {d} sweeps"));
        let grace = self.dispatchers[d].detector.grace(duration(self.now));
        // Effects follow only if the transaction is committed and the dispatcher still lives.
        let mut written = std::mem::take(&mut self.written);
        let done = self.transaction(d, commit, |world| {
            for transition in world.plan_due(d, pick, grace) {
                if let Some(facts) = world.apply(&transition) {
                    written.push((transition, facts));
                }
            }
        });
        if done.is_some() {
            for (transition, facts) in &written {
                self.carry_out_all(d, transition, facts);
            }
        }
        written.clear();
        self.written = written;
    }

    /// Tells the outage detector of a sweep. The dispatcher checked the streams and swept every second until now,
    /// unless a server was down: then its connection broke in between.
    fn begin_sweep(&mut self, d: usize) {
        let (outages, now, up) = (self.outages, duration(self.now), self.nats_up && self.postgres_up);
        let dispatcher = &mut self.dispatchers[d];
        let connected = up && dispatcher.outage == outages;
        dispatcher.outage = outages;
        dispatcher.detector.observe(Observation::SweepEnded { failed: false }, now);
        if !dispatcher.check_failed {
            dispatcher.detector.observe(Observation::CheckEnded { began: now, failed: false }, now);
        }
        dispatcher.detector.observe(Observation::SweepBegan { connected }, now);
    }

    fn something_is_due(&self) -> bool {
        self.tables.calls.iter().any(|row| row.is_open() && row.wake_at <= self.now)
    }

    fn plan_due(&self, d: usize, pick: u32, grace: Duration) -> Vec<Transition> {
        let due = |(_, row): &(usize, &CallRow)| row.is_open() && row.wake_at <= self.now;
        let rows = self.tables.calls.iter().enumerate().filter(due);
        let calls: Vec<CallRecord> = rows.map(|(call, row)| self.due_record(call as CallNo, row)).collect();
        let feeder = &self.dispatchers[d].feeder;
        let conditions = Conditions {
            tools: &self.tools,
            grace,
            lease: duration(LEASE),
            job: &|call| feeder.job_state(&self.tables.calls[usize::from(call_no(call.id))]),
            waiting: &|call| feeder.waiting(&self.tables.calls[usize::from(call_no(call.id))]),
        };
        plan_due(&calls, &conditions, || f64::from(pick >> 3 & 15) / 16.0)
    }

    /// `lock_due_calls.sql` also reads when the worker was heard.
    fn due_record(&self, call: CallNo, row: &CallRow) -> CallRecord {
        let mut workers = self.tables.workers.iter();
        let heard = workers.find(|worker| worker.process == row.worker).and_then(|worker| worker.heard_after.map(time));
        CallRecord { worker_heard_after: heard, ..row.record(call, self.now) }
    }

    /// Checks the streams. If jobs may be lost and no other dispatcher has dealt with that, the unclaimed calls go back to
    /// the backlog.
    pub(super) fn check_streams(&mut self, d: usize, commit: CommitOutcome) {
        let (now, stream, up) = (self.now, self.stream, self.nats_up && self.postgres_up);
        let dispatcher = &mut self.dispatchers[d];
        let had_failed = std::mem::replace(&mut dispatcher.check_failed, !up);
        dispatcher.detector.observe(Observation::CheckEnded { began: duration(now), failed: !up }, duration(now));
        if !up {
            return;
        }
        let queued = self.queued_consumers();
        let Dispatcher { stream: known, checked_at, feeder, .. } = &mut self.dispatchers[d];
        feeder.queued = queued;
        let failed_after = checked_at.filter(|_| had_failed);
        let from = failed_after.filter(|_| *known == Some(stream)).map_or(Ms::MIN, |at| at - BEFORE);
        let adopted = self.transaction(d, commit, |world| world.adopt_job_stream(stream, failed_after));
        if adopted == Some(true) {
            self.log(|| format!("dispatcher {d} finds that jobs may be lost"));
            self.requeue_lost(from, None);
        }
        if adopted.is_some() {
            let dispatcher = &mut self.dispatchers[d];
            (dispatcher.stream, dispatcher.checked_at) = (Some(stream), Some(now));
        }
    }

    /// The consumers whose jobs wait although none of their workers asks for one, as bits.
    fn queued_consumers(&self) -> u8 {
        let asks =
            |consumer| self.workers.iter().any(|worker| worker.consumer == Some(consumer) && worker.free_permits() > 0);
        let pending = self.jobs.iter().filter(|message| message.deliveries == 0 && !asks(message.consumer));
        pending.fold(0, |queued, message| queued | 1 << message.consumer)
    }

    /// `adopt_job_stream.sql`: true if this dispatcher deals with a loss of jobs.
    fn adopt_job_stream(&mut self, created: u32, lost_after: Option<Ms>) -> bool {
        let on_record = self.tables.job_stream;
        let adopts =
            on_record.created != Some(created) || lost_after.is_some_and(|after| on_record.requeued_at < after);
        if adopts {
            self.tables.job_stream = JobStream { created: Some(created), requeued_at: self.now };
        }
        adopts
    }
}
