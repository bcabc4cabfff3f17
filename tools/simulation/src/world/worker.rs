//! A worker process: it pulls and claims jobs, runs their tools, keeps its leases and reports.
//!
//! A request of a worker is answered at once or never. It may also arrive late, or again: every request that was sent is
//! kept, and some moves play one of them.

use chrono::TimeDelta;
use redial_engine::Time;
use redial_proto::{ClaimId, ErrorClass, GrantRef, JobRef, ToolEffect};
use uuid::Uuid;

use super::{
    ACK_WAIT, ALL_TOOLS, Execution, JobMessage, LEASE, Process, ResultMessage, TIMEOUT, ToolSet, World, named,
    operations::{Operation, OperationKind},
    tables::WorkerRow,
};
use crate::{Invariant, Mutation, random::mix};

/// Attempts that it runs at the same time, and those that it holds until their reports are on record.
pub(super) const PERMITS: usize = 2;
const MOST_HELD: usize = 4;
/// A worker considers its lease over this long before the database does.
const LEASE_MARGIN: TimeDelta = TimeDelta::seconds(1);
/// It sends heartbeats, and again what got no reply, in this interval.
const TIMER: TimeDelta = TimeDelta::seconds(2);

/// A process; another one replaces it when it dies.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) process: Process,
    pub(super) tools: ToolSet,
    /// Stopped by a signal; its tools may go on.
    pub(super) paused: bool,
    /// It cannot reach anything.
    pub(super) cut: bool,
    /// It was asked to stop, and takes no new jobs.
    pub(super) stopping: bool,
    pub(super) held: Vec<Held>,
    /// Releases that got no reply yet.
    releases: Vec<GrantRef>,
    /// When the last heartbeat was answered.
    heard_at: Option<Time>,
    timer_at: Time,
}

/// An attempt that was granted to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) grant: GrantRef,
    effect: ToolEffect,
    lease: Time,
    /// When the timeout passes.
    ends_at: Time,
    /// The index of its execution.
    pub(super) execution: usize,
    /// The tool has ended or was stopped; its report is not yet on record.
    pub(super) reported: bool,
}

impl Held {
    pub(super) const fn job(&self) -> JobRef {
        JobRef { call: self.grant.call, attempt: self.grant.attempt }
    }
}

/// How an attempt ended, as its worker reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// `None` is a success.
    pub(super) class: Option<ErrorClass>,
    pub(super) effect_possible: bool,
    /// A limited service says when to come back.
    pub(super) pauses: bool,
}

/// A worker's report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) grant: GrantRef,
    pub(super) worker: Process,
    pub(super) outcome: Outcome,
}

/// A request of a worker.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Claim {
        worker: Process,
        claim: ClaimId,
        jobs: Vec<JobRef>,
    },
    /// With the attempts that it holds, and when an answer was written that it had before.
    Heartbeat {
        worker: Process,
        jobs: Vec<JobRef>,
        after: Option<Time>,
    },
    Release {
        worker: Process,
        grant: GrantRef,
    },
}

impl Worker {
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.releases.is_empty()
    }

    pub(super) fn free_permits(&self) -> usize {
        let running = self.held.iter().filter(|held| !held.reported).count();
        let full = self.paused || self.cut || self.stopping || self.held.len() >= MOST_HELD;
        if full { 0 } else { PERMITS.saturating_sub(running) }
    }

    /// When its next timer is due; `None` if none runs.
    pub(super) fn next_due_at(&self) -> Option<Time> {
        let leases = self.held.iter().filter(|held| !held.reported).map(|held| held.lease.min(held.ends_at));
        leases.chain([self.timer_at]).min().filter(|_| !self.paused && !self.is_idle())
    }
}

impl World<'_> {
    /// A new process: one in two lacks one of the tools.
    pub(super) fn new_worker(&mut self) -> Worker {
        let process = self.new_number() as Process;
        let tools = match mix(self.setup.seed ^ u64::from(process)) & 3 {
            0 => 1,
            1 => 2,
            _ => ALL_TOOLS,
        };
        let (held, releases, timer_at) = (Vec::new(), Vec::new(), self.now);
        let (paused, cut, stopping, heard_at) = (false, false, false, None);
        Worker { process, tools, paused, cut, stopping, held, releases, heard_at, timer_at }
    }

    pub(super) fn worker_of(&self, process: Process) -> Option<usize> {
        self.workers.iter().position(|worker| worker.process == process)
    }

    /// Every worker that can be reached says that it lives; one that is not on record registers.
    pub(super) fn record_heartbeats(&mut self) {
        if !self.nats_up || !self.postgres_up {
            return;
        }
        let seen_at = self.now;
        for worker in self.workers.iter().filter(|worker| !worker.paused && !worker.cut) {
            let (process, tools, draining) = (worker.process, worker.tools, worker.stopping);
            match self.registered.iter_mut().find(|row| row.process == process) {
                Some(row) => {
                    (row.seen_at, row.draining) = (seen_at, draining);
                    row.heard_after = if worker.held.is_empty() { Some(seen_at) } else { row.heard_after };
                }
                None => self.registered.push(WorkerRow { process, tools, seen_at, heard_after: None, draining }),
            }
        }
    }

    // ---- Claiming ----

    pub(super) fn can_pull(&self, w: usize) -> bool {
        let worker = &self.workers[w];
        let is_registered = || self.registered.iter().any(|row| row.process == worker.process);
        let waits = |message: &JobMessage| message.redeliver_at <= self.now && message.consumer == worker.tools;
        self.nats_up && worker.free_permits() > 0 && self.jobs.iter().any(waits) && is_registered()
    }

    /// Pulls jobs for the free permits and claims them; starts what is granted.
    pub(super) fn pull(&mut self, w: usize, pick: u32) {
        let (now, worker) = (self.now, &self.workers[w]);
        let (free, process, consumer) = (worker.free_permits(), worker.process, worker.tools);
        let ready = |message: &&mut JobMessage| message.redeliver_at <= now && message.consumer == consumer;
        let mut jobs = Vec::new();
        for message in self.jobs.iter_mut().filter(ready).take(free) {
            (message.redeliver_at, message.delivered) = (now + ACK_WAIT, true);
            jobs.push(message.job);
        }
        let claim = ClaimId(Uuid::from_u128(self.new_number().into()));
        self.log(|| format!("worker {w} pulls {:?} and claims", jobs.iter().copied().map(named).collect::<Vec<_>>()));
        if self.workers[w].is_idle() {
            self.workers[w].timer_at = now + TIMER;
        }
        if self.request(w, Request::Claim { worker: process, claim, jobs: jobs.clone() }, pick) {
            self.jobs.retain(|message| message.redeliver_at <= now || !jobs.contains(&message.job));
            return;
        }
        // The claim may have been granted all the same, so its attempts are released.
        for JobRef { call, attempt } in jobs {
            self.release(w, GrantRef { call, attempt, claim });
        }
    }

    fn granted(&mut self, w: usize, grant: GrantRef) {
        let (job, worker) = (JobRef { call: grant.call, attempt: grant.attempt }, self.workers[w].process);
        let waits = !self.given_up_by(w, grant) && !self.workers[w].held.iter().any(|held| held.grant == grant);
        if !waits {
            return;
        }
        if self.workers[w].stopping {
            return self.release(w, grant);
        }
        self.log(|| format!("worker {w} starts attempt {}", named(job)));
        // A paused process does not count: it cannot stop its tool in time.
        let mut held = self.workers.iter().filter(|worker| !worker.paused).flat_map(|worker| &worker.held);
        if held.any(|held| !held.reported && held.grant.call == job.call) {
            self.report_violation(Invariant::LeasesApart, || format!("attempt {} runs beside another one", named(job)));
        }
        let (effect, execution) = (self.call(job.call).record.effect, self.executions.len());
        self.executions.push(Execution { job, worker, effect: false, stopped: false, reported: None });
        let (lease, ends_at) = (self.now + LEASE - LEASE_MARGIN, self.now + TIMEOUT);
        self.workers[w].held.push(Held { grant, effect, lease, ends_at, execution, reported: false });
    }

    /// The worker released it, or the claim has started it before.
    fn given_up_by(&self, w: usize, grant: GrantRef) -> bool {
        self.workers[w].releases.contains(&grant) || self.given_up.contains(&grant)
    }

    // ---- Requests ----

    /// Sends a request; false if no reply arrived. `pick` chooses the dispatcher and what goes wrong.
    fn request(&mut self, w: usize, request: Request, pick: u32) -> bool {
        if !self.nats_up || self.workers[w].cut {
            return false;
        }
        self.old_requests.push(request.clone());
        let is_lost = !self.setup.calm && !self.draining && pick >> 8 & 15 == 1;
        !is_lost && self.serve(request, pick)
    }

    /// A dispatcher serves a request; false if no reply arrived.
    pub(super) fn serve(&mut self, request: Request, pick: u32) -> bool {
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let commit = super::dispatcher::CommitOutcome::of(pick);
        let (Request::Claim { worker, .. } | Request::Heartbeat { worker, .. } | Request::Release { worker, .. }) =
            request;
        let is_lost = !self.setup.calm && !self.draining && pick >> 8 & 15 == 2;
        let reached = |world: &Self| {
            let w = world.worker_of(worker).filter(|w| !world.workers[*w].cut && !world.workers[*w].paused);
            w.filter(|_| !is_lost)
        };
        match request {
            Request::Claim { worker, claim, jobs } => {
                let granted = self.transaction(d, commit, |world| {
                    let granted = jobs.into_iter().filter(|job| world.claim(worker, claim, *job));
                    granted.collect::<Vec<_>>()
                });
                let (Some(granted), Some(w)) = (granted, reached(self)) else { return false };
                for JobRef { call, attempt } in granted {
                    self.granted(w, GrantRef { call, attempt, claim });
                }
                true
            }
            Request::Heartbeat { worker, jobs, after } => {
                let renewed = self.transaction(d, commit, |world| {
                    if let Some(row) = world.registered.iter_mut().find(|row| row.process == worker) {
                        row.heard_after = after;
                    }
                    jobs.into_iter().map(|job| (job, world.renew(worker, job))).collect::<Vec<_>>()
                });
                let (Some(renewed), Some(w)) = (renewed, reached(self)) else { return false };
                self.renewed(w, &renewed);
                true
            }
            Request::Release { worker, grant } => {
                self.dispatchers[d].operations.push(Operation::new(OperationKind::Release { worker, grant }));
                true
            }
        }
    }

    fn renewed(&mut self, w: usize, renewed: &[(JobRef, Option<bool>)]) {
        let lease = self.now + LEASE - LEASE_MARGIN;
        self.workers[w].heard_at = Some(self.now);
        for (job, cancel) in renewed {
            match (cancel, self.workers[w].held.iter_mut().find(|held| held.job() == *job)) {
                (None, _) => self.forget(w, *job, false),
                (Some(cancel), Some(held)) => {
                    held.lease = lease;
                    if *cancel {
                        self.cancel_tool(w, *job);
                    }
                }
                (Some(_), None) => {}
            }
        }
    }

    fn release(&mut self, w: usize, grant: GrantRef) {
        self.workers[w].releases.push(grant);
        let worker = self.workers[w].process;
        self.request(w, Request::Release { worker, grant }, self.chance());
    }

    /// A dispatcher has dealt with a release.
    pub(super) fn released(&mut self, worker: Process, grant: GrantRef) {
        if let Some(w) = self.worker_of(worker).filter(|w| self.nats_up && !self.workers[*w].cut) {
            self.workers[w].releases.retain(|release| *release != grant);
        }
    }

    // ---- Timers ----

    /// Runs the timers that are due.
    pub(super) fn run_timers(&mut self, w: usize) {
        self.expire(w);
        if self.workers[w].timer_at > self.now {
            return;
        }
        self.workers[w].timer_at = self.now + TIMER;
        let Worker { process: worker, heard_at: after, .. } = self.workers[w];
        let jobs: Vec<JobRef> = self.workers[w].held.iter().map(Held::job).collect();
        if !jobs.is_empty() {
            self.request(w, Request::Heartbeat { worker, jobs, after }, self.chance());
        }
        for grant in self.workers[w].releases.clone() {
            self.request(w, Request::Release { worker, grant }, self.chance());
        }
        for n in 0..self.workers[w].held.len() {
            self.send_report(w, n);
        }
    }

    /// Stops the tools whose lease has ended, or whose timeout has passed.
    pub(super) fn expire(&mut self, w: usize) {
        let (now, mut n) = (self.now, 0);
        while n < self.workers[w].held.len() && !self.has(Mutation::ToolOutlivesLease) {
            let held = self.workers[w].held[n];
            if !held.reported && held.lease > now && held.ends_at <= now {
                self.log(|| format!("worker {w} stops attempt {}: its timeout has passed", named(held.job())));
                self.stop_tool(w, n, ErrorClass::Timeout);
            }
            if held.reported || held.lease > now || !self.stop_and_release(w, n) {
                n += 1;
            }
        }
        let held = self.workers[w].held.iter_mut().filter(|held| held.lease.min(held.ends_at) <= now);
        held.for_each(|held| (held.lease, held.ends_at) = (Time::MAX_UTC, Time::MAX_UTC));
    }

    /// Stops a tool before its end and releases its attempt; true if so. The attempt of an `unsafe` tool is reported as
    /// lost instead, because nobody knows whether it had its effect.
    fn stop_and_release(&mut self, w: usize, n: usize) -> bool {
        let held = self.workers[w].held[n];
        self.log(|| format!("worker {w} stops attempt {}", named(held.job())));
        if held.effect == ToolEffect::Unsafe {
            self.stop_tool(w, n, ErrorClass::Lost);
            return false;
        }
        self.executions[held.execution].stopped = true;
        self.workers[w].held.remove(n);
        self.release(w, held.grant);
        true
    }

    // ---- Ends ----

    /// Drops an attempt because its report is on record (`recorded`) or because its lease was lost.
    pub(super) fn forget(&mut self, w: usize, job: JobRef, recorded: bool) {
        let Some(n) = self.workers[w].held.iter().position(|held| held.job() == job) else { return };
        let held = self.workers[w].held[n];
        if held.reported || !recorded {
            self.executions[held.execution].stopped |= !held.reported;
            self.workers[w].held.remove(n);
        }
    }

    pub(super) fn cancel_tool(&mut self, w: usize, job: JobRef) {
        let running = |held: &Held| held.job() == job && !held.reported;
        let Some(n) = self.workers[w].held.iter().position(running) else { return };
        self.log(|| format!("worker {w} stops attempt {}: it is cancelled", named(job)));
        self.stop_tool(w, n, ErrorClass::Cancelled);
    }

    /// Stops a tool and reports that.
    fn stop_tool(&mut self, w: usize, n: usize, class: ErrorClass) {
        self.executions[self.workers[w].held[n].execution].stopped = true;
        self.report(w, n, Outcome { class: Some(class), effect_possible: true, pauses: false });
    }

    /// Reports the end of an attempt; the report is sent again until it is on record.
    pub(super) fn report(&mut self, w: usize, n: usize, outcome: Outcome) {
        let held = &mut self.workers[w].held[n];
        held.reported = true;
        self.executions[held.execution].reported = Some(outcome);
        self.send_report(w, n);
    }

    fn send_report(&mut self, w: usize, n: usize) {
        let worker = &self.workers[w];
        let reported = self.executions[worker.held[n].execution].reported;
        if let (true, false, Some(outcome)) = (self.nats_up, worker.cut, reported) {
            let report = Report { grant: worker.held[n].grant, worker: worker.process, outcome };
            self.old_reports.push(report);
            self.store_report(report);
        }
    }

    pub(super) fn store_report(&mut self, report: Report) {
        let (number, redeliver_at) = (self.new_number(), self.now);
        self.results.push(ResultMessage { number, report, redeliver_at });
    }

    /// Asks a process to stop: it stops its tools if `at_once`, and takes no new jobs.
    pub(super) fn shut_down(&mut self, w: usize, at_once: bool) {
        self.workers[w].stopping = true;
        let mut n = 0;
        while at_once && n < self.workers[w].held.len() {
            if self.workers[w].held[n].reported || !self.stop_and_release(w, n) {
                n += 1;
            }
        }
    }

    /// Replaces a process that was asked to stop and has nothing left to do.
    pub(super) fn replace_if_stopped(&mut self, w: usize) {
        let worker = &self.workers[w];
        if worker.stopping && !worker.paused && worker.is_idle() {
            self.log(|| format!("worker {w} has ended, another one starts"));
            self.workers[w] = self.new_worker();
        }
    }
}
