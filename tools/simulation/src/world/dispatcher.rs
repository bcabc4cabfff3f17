//! A dispatcher process: its unfinished work, and the effects that it carries out. The engine plans.

use std::time::Duration;

use redial_engine::{
    call::{CallEvent, effects, plan},
    outage::{Observation, OutageDetector},
};
use redial_proto::{JobRef, RetryPolicy};
use redial_records::{CallFacts, Change, Effect, OutgoingJob, Transition};

use super::{
    LEASE, RECONNECT, World,
    database::Fate,
    rows::{CallNo, Grant, Job, Ms, Packet, Process, Report, Row, call_no, process_of, time, uptime},
};
use crate::Mutation;

/// A process; when it dies another one takes its place.
#[derive(Clone, Debug)]
pub(super) struct Dispatcher {
    pub(super) process: Process,
    pub(super) detector: OutageDetector,
    /// The last outage that it knows of.
    pub(super) outage: u32,
    /// The job stream that it knows.
    pub(super) stream: Option<u32>,
    /// Its last look at the streams failed.
    pub(super) look_failed: bool,
    /// When a look last succeeded.
    pub(super) well_at: Ms,
    pub(super) works: Vec<Work>,
}

/// Something that takes more than one statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) what: Task,
    /// The call as it last read it.
    pub(super) seen: Option<Row>,
    /// A release: the claim is given up.
    pub(super) given_up: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Ingest { seq: u32, report: Report },
    Release { worker: Process, grant: Grant },
    Cancel { call: CallNo, for_client: bool },
}

impl Task {
    pub(super) const fn call(&self) -> CallNo {
        match self {
            Self::Ingest { report, .. } => report.job.call,
            Self::Release { grant, .. } => grant.job.call,
            Self::Cancel { call, .. } => *call,
        }
    }
}

impl Dispatcher {
    pub(super) const fn new(process: Process, now: Ms) -> Self {
        let (lease, reconnect) = (Duration::from_millis(LEASE as u64), Duration::from_millis(RECONNECT as u64));
        let detector = OutageDetector::new(lease, reconnect, Duration::from_millis(now as u64));
        Self { process, detector, outage: 0, stream: None, look_failed: false, well_at: 0, works: Vec::new() }
    }

    pub(super) fn begin(&mut self, what: Task) {
        self.works.push(Work { what, seen: None, given_up: false });
    }
}

impl World {
    /// Runs one transaction. `None` if the dispatcher does not get to know that it was committed; then it may be dead.
    pub(super) fn transaction<T>(&mut self, d: usize, fate: Fate, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let fate = if self.postgres_up { fate } else { Fate::Vanish };
        if fate != Fate::Commit {
            self.tell(|| format!("    the transaction of dispatcher {d}: {fate:?}"));
        }
        let items = self.tables.inbox.len();
        let done = fate.is_committed().then(|| work(self));
        if fate == Fate::DieAfter && self.has(Mutation::InboxOutsideTransaction) && self.tables.inbox.len() > items {
            self.tables.inbox.truncate(items);
        }
        if matches!(fate, Fate::DieBefore | Fate::DieAfter) {
            self.kill_dispatcher(d);
        }
        done.filter(|_| fate == Fate::Commit)
    }

    pub(super) fn kill_dispatcher(&mut self, d: usize) {
        self.tell(|| format!("dispatcher {d} dies, another one starts"));
        let process = self.new_process();
        let (now, outage) = (self.now, self.outages);
        // Its unfinished work goes with it; the list's memory is used again.
        let mut works = std::mem::take(&mut self.dispatchers[d].works);
        works.clear();
        self.dispatchers[d] = Dispatcher { outage, works, ..Dispatcher::new(process, now) };
    }

    /// A sweep begins. The dispatcher has looked and swept every second until now, unless a server was down: then its
    /// connection broke in between.
    pub(super) fn begin_sweep(&mut self, d: usize) {
        let (outages, now, up) = (self.outages, uptime(self.now), self.nats_up && self.postgres_up);
        let dispatcher = &mut self.dispatchers[d];
        let connected = up && dispatcher.outage == outages;
        dispatcher.outage = outages;
        dispatcher.detector.observe(Observation::SweepEnded { failed: false }, now);
        if !dispatcher.look_failed {
            dispatcher.detector.observe(Observation::LookEnded { began: now, failed: false }, now);
        }
        dispatcher.detector.observe(Observation::SweepBegan { connected }, now);
    }

    /// What an event does to a call; `None` if nothing.
    pub(super) fn plan(&self, call: CallNo, row: &Row, event: &CallEvent<'_>, random: f64) -> Option<Transition> {
        plan(&row.record(call, self.now), &RetryPolicy::default(), event, time(self.now), random)
    }

    /// Carries out the effects of a committed transition.
    pub(super) fn act(&mut self, d: usize, transition: &Transition, facts: &CallFacts) {
        self.tell(|| describe(transition, facts));
        for effect in effects(transition, facts) {
            self.carry_out(d, effect);
        }
    }

    pub(super) fn carry_out(&mut self, d: usize, effect: Effect) {
        let job = |job: JobRef| Job { call: call_no(job.call), attempt: job.attempt };
        match effect {
            Effect::PublishJob(OutgoingJob { job, publish_no, .. }) => {
                self.publish(Job { call: call_no(job.call), attempt: job.attempt }, publish_no);
            }
            Effect::StopWorker { worker, attempt } => {
                self.send(Packet::Stop { worker: process_of(&worker), job: job(attempt) });
            }
            Effect::CancelCall(call) => {
                self.dispatchers[d].begin(Task::Cancel { call: call_no(call), for_client: false });
            }
            // Tasks and due calls are found by what is on record, and no client waits for an event.
            Effect::NotifySubmitter(_) | Effect::NotifyWatchers(_) | Effect::WakeTask(_) | Effect::WakeSweeper => {}
        }
    }
}

fn describe(transition: &Transition, facts: &CallFacts) -> String {
    let publish = if transition.publishes() { ", its job is published" } else { "" };
    let why = match &transition.change {
        Change::End { failure: Some(failure), .. } => format!(" ({})", failure.class),
        _ => String::new(),
    };
    let (call, state, attempt) = (call_no(transition.call), transition.state(), facts.attempt);
    format!("    call {call} is {state}{why}, attempt {attempt}{publish}")
}
