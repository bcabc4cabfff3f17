//! A dispatcher process: its transactions, the effects that follow them, and its sweeps.

use chrono::TimeDelta;
use redial_engine::{
    Time,
    call::{CallEvent, JobState, Waiting, effects, plan},
    outage::{Observation, OutageDetector},
    sweep::{Conditions, plan_due},
};
use redial_proto::{JobRef, RetryPolicy};
use redial_records::{CallFacts, CallRecord, Change, Effect, OutgoingJob, Transition};

use super::{
    JobMessage, LEASE, Process, TOOLS, World,
    feeder::Feeder,
    named,
    operations::{Operation, OperationKind},
    tables::CallRow,
    worker_id,
};
use crate::Mutation;

/// The longest time that a process takes to reconnect.
const LONGEST_RECONNECT: TimeDelta = TimeDelta::seconds(3);

/// A process; another one replaces it when it dies.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) process: Process,
    pub(super) detector: OutageDetector,
    /// The number of the last outage that it noticed.
    outage: u32,
    /// Its last check of the streams failed.
    check_failed: bool,
    /// Jobs waited for workers at that check.
    queued: bool,
    pub(super) operations: Vec<Operation>,
    pub(super) feeder: Feeder,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitOutcome {
    /// It is committed, and the dispatcher carries out its effects.
    Committed,
    /// It is rolled back.
    RolledBack,
    /// It is committed, and the dispatcher gets an error.
    Unknown,
    /// It is committed, and the dispatcher dies right after that.
    Dies,
}

impl CommitOutcome {
    /// Chooses: nineteen of twenty transactions are committed without an error.
    pub(super) const fn of(pick: u32) -> Self {
        match pick >> 24 {
            243..=246 => Self::RolledBack,
            247..=250 => Self::Unknown,
            251..=255 => Self::Dies,
            _ => Self::Committed,
        }
    }
}

impl World {
    pub(super) fn new_dispatcher(&mut self) -> Dispatcher {
        let std = |delta: TimeDelta| delta.to_std().unwrap_or_default();
        let detector = OutageDetector::new(std(LEASE), std(LONGEST_RECONNECT), self.uptime());
        let (process, outage) = (self.new_number(), self.outages);
        let (operations, feeder) = (Vec::new(), self.new_feeder());
        Dispatcher { process, detector, outage, check_failed: false, queued: false, operations, feeder }
    }

    pub(super) fn kill_dispatcher(&mut self, d: usize) {
        self.log(|| format!("dispatcher {d} dies, another one starts"));
        self.dispatchers[d] = self.new_dispatcher();
    }

    /// Runs one transaction. `None` if the dispatcher does not learn that it was committed; then it may have died.
    pub(super) fn transaction<T>(
        &mut self,
        d: usize,
        commit: CommitOutcome,
        body: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let commit = if self.postgres_up { commit } else { CommitOutcome::RolledBack };
        if commit != CommitOutcome::Committed {
            self.log(|| format!("    the transaction of dispatcher {d}: {commit:?}"));
        }
        let items = self.inbox.len();
        let done = (commit != CommitOutcome::RolledBack).then(|| body(self));
        if commit == CommitOutcome::Dies {
            if self.has(Mutation::InboxOutsideTransaction) {
                self.inbox.truncate(items);
            }
            self.kill_dispatcher(d);
        }
        done.filter(|_| commit == CommitOutcome::Committed)
    }

    // ---- Transitions and effects ----

    /// Returns the transition that the engine plans for an event; `None` if the event changes nothing.
    pub(super) fn plan(&self, row: &CallRow, event: &CallEvent<'_>, random: f64) -> Option<Transition> {
        let record = CallRecord { read_at: self.now, ..row.record.clone() };
        plan(&record, &RetryPolicy::default(), event, self.now, random)
    }

    /// Carries out all effects of a committed transition.
    pub(super) fn carry_out_all(&mut self, d: usize, transition: &Transition, facts: &CallFacts) {
        self.log(|| log_line(transition, facts));
        for effect in effects(transition, facts) {
            self.carry_out(d, effect);
        }
    }

    pub(super) fn carry_out(&mut self, d: usize, effect: Effect) {
        match effect {
            Effect::PublishJob(OutgoingJob { job, publish_no, .. }) => {
                self.publish(JobRef { call: job.call, attempt: job.attempt }, publish_no);
            }
            Effect::StopWorker { worker, grant } => {
                let is_lost = self.chance() & 7 == 7;
                let reached = self.workers.iter().filter(|one| !one.cut && self.nats_up && !is_lost);
                if let Some(process) = reached.map(|one| one.process).find(|process| worker_id(*process) == worker) {
                    self.cancel_tool(process, grant);
                }
            }
            Effect::CancelCall(call) => {
                let kind = OperationKind::Cancel { call, for_client: false };
                self.dispatchers[d].operations.push(Operation::new(kind));
            }
            // The model finds tasks, due calls and those that wait by polling the tables, and no client waits for an event.
            Effect::NotifySubmitter(_)
            | Effect::NotifyWatchers { .. }
            | Effect::WakeTask(_)
            | Effect::WakeSweeper
            | Effect::WakeFeeder { .. } => {}
        }
    }

    /// Publishes a job after the commit. A call whose job cannot be published goes back to the backlog.
    pub(super) fn publish(&mut self, job: JobRef, publish_no: u32) {
        if self.nats_up {
            self.old_jobs.push(job);
            return self.store_job(job);
        }
        let up = self.postgres_up;
        let row = self.call_mut(job.call);
        if up && row.is_ready() && row.record.backlog.is_none() && row.record.publish_no == publish_no {
            row.put_back();
        }
    }

    pub(super) fn store_job(&mut self, job: JobRef) {
        self.jobs.push(JobMessage { job, delivered: false, redeliver_at: self.now });
    }

    // ---- Sweeps ----

    /// Sweeps the due calls in one transaction, then carries out the effects.
    pub(super) fn sweep(&mut self, d: usize, pick: u32, commit: CommitOutcome) {
        self.observe_sweep(d);
        let is_due = |row: &CallRow, now: Time| row.is_open() && row.wake_at <= now;
        if self.has(Mutation::SweeperOff) || !self.postgres_up || !self.calls.iter().any(|row| is_due(row, self.now)) {
            return;
        }
        self.log(|| format!("dispatcher {d} sweeps"));
        let grace = self.dispatchers[d].detector.grace(self.uptime());
        let written = self.transaction(d, commit, |world| {
            let due = world.calls.iter().filter(|row| is_due(row, world.now) && !world.locked.contains(&row.record.id));
            let due: Vec<CallRecord> = due.map(|row| CallRecord { read_at: world.now, ..row.record.clone() }).collect();
            let queued = world.dispatchers[d].queued;
            let conditions = Conditions {
                tools: &TOOLS,
                grace: &|_| grace,
                job: &|call| if queued && call.consumer.is_some() { JobState::Queued } else { JobState::Lost },
                waiting: &|_| Waiting::InBacklog,
            };
            let planned = plan_due(&due, &conditions, || f64::from(pick >> 3 & 15) / 16.0);
            let written = planned.into_iter().filter_map(|one| world.apply(&one).map(|facts| (one, facts)));
            written.collect::<Vec<_>>()
        });
        for (transition, facts) in written.unwrap_or_default() {
            self.carry_out_all(d, &transition, &facts);
        }
    }

    /// Tells the outage detector of a sweep. The dispatcher checked the streams and swept every second until now,
    /// unless a server was down: then its connection broke in between.
    fn observe_sweep(&mut self, d: usize) {
        let (outages, now, up) = (self.outages, self.uptime(), self.nats_up && self.postgres_up);
        let dispatcher = &mut self.dispatchers[d];
        let connected = up && dispatcher.outage == outages;
        dispatcher.outage = outages;
        dispatcher.detector.observe(Observation::SweepEnded { failed: false }, now);
        if !dispatcher.check_failed {
            dispatcher.detector.observe(Observation::CheckEnded { began: now, failed: false }, now);
        }
        dispatcher.detector.observe(Observation::SweepBegan { connected }, now);
    }

    /// Checks the streams, and learns whether jobs wait there although no worker asks for one.
    pub(super) fn check_streams(&mut self, d: usize) {
        let (now, failed) = (self.uptime(), !self.nats_up || !self.postgres_up);
        let asks = (0..self.workers.len()).any(|w| self.free_permits(w) > 0);
        let queued = !asks && self.jobs.iter().any(|message| !message.delivered);
        let dispatcher = &mut self.dispatchers[d];
        dispatcher.check_failed = failed;
        dispatcher.detector.observe(Observation::CheckEnded { began: now, failed }, now);
        if !failed {
            dispatcher.queued = queued;
        }
    }
}

fn log_line(transition: &Transition, facts: &CallFacts) -> String {
    let why = match &transition.change {
        Change::End { failure: Some(failure), .. } => format!(" ({})", failure.class),
        Change::Wait { backlog, .. } => format!(" and waits ({backlog:?})"),
        Change::Extend { .. } => " and gets more time".to_owned(),
        _ => String::new(),
    };
    let attempt = named(JobRef { call: transition.call, attempt: facts.attempt });
    format!("    attempt {attempt}: the call is {}{why}", transition.state())
}
