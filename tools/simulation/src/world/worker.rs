//! Workers: they claim jobs, run their tools, keep their leases and report.
//!
//! A request of a worker is answered at once or never. It may also arrive late, or again: every request that was sent is
//! kept, and some moves play one of them.

use chrono::TimeDelta;
use redial_engine::Time;
use redial_proto::{ClaimId, ErrorClass, GrantRef, JobRef, ToolEffect};
use uuid::Uuid;

use super::{
    ACK_WAIT, LEASE, Process, ResultMessage, TIMEOUT, World,
    dispatcher::CommitOutcome,
    job_of, named,
    operations::{Operation, OperationKind},
};
use crate::{Invariant, Mutation};

/// Attempts that a worker runs at the same time.
pub(super) const PERMITS: usize = 2;
/// It sends heartbeats, and again what got no reply, in this interval.
pub(super) const TIMER: TimeDelta = TimeDelta::seconds(2);
/// A worker considers its lease over this long before the database does: longer than it may take to notice.
const LEASE_MARGIN: TimeDelta = TimeDelta::seconds(3);

/// A process; another one replaces it when it dies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worker {
    pub(super) process: Process,
    /// It cannot reach anything.
    pub(super) cut: bool,
}

/// A granted attempt at its worker, and what really happened in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    pub(super) grant: GrantRef,
    pub(super) worker: Process,
    lease: Time,
    /// When the timeout passes.
    ends_at: Time,
    /// The tool has had its effect.
    pub(super) effect: bool,
    /// Its worker stopped it before its end.
    pub(super) stopped: bool,
    /// How it ended, as its worker says.
    pub(super) reported: Option<Outcome>,
    /// The worker still holds it: until the report is on record, it is released, or the worker dies.
    held: bool,
}

impl Execution {
    pub(super) const fn runs(&self) -> bool {
        self.held && self.reported.is_none()
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
    Claim { worker: Process, claim: ClaimId, jobs: Vec<JobRef> },
    Heartbeat { worker: Process, jobs: Vec<JobRef> },
    Release { worker: Process, grant: GrantRef },
}

impl World {
    pub(super) fn new_worker(&mut self) -> Worker {
        Worker { process: self.new_number(), cut: false }
    }

    /// A worker process is killed; another one starts.
    pub(super) fn kill_worker(&mut self, w: usize) {
        let process = self.workers[w].process;
        self.releases.retain(|(worker, _)| *worker != process);
        self.executions.iter_mut().filter(|one| one.worker == process).for_each(|one| one.held = false);
        self.workers[w] = self.new_worker();
    }

    fn reached(&self, process: Process) -> Option<usize> {
        self.workers.iter().position(|worker| worker.process == process && !worker.cut && self.nats_up)
    }

    pub(super) fn free_permits(&self, w: usize) -> usize {
        let Worker { process, cut } = self.workers[w];
        let running = self.executions.iter().filter(|one| one.worker == process && one.runs()).count();
        if cut { 0 } else { PERMITS.saturating_sub(running) }
    }

    // ---- Claiming ----

    pub(super) fn can_claim(&self, w: usize) -> bool {
        self.nats_up && self.free_permits(w) > 0 && self.jobs.iter().any(|job| job.redeliver_at <= self.now)
    }

    /// Pulls jobs for the free permits and claims them; starts what is granted.
    pub(super) fn claim_jobs(&mut self, w: usize, pick: u32) {
        let (now, worker, free) = (self.now, self.workers[w].process, self.free_permits(w));
        let mut jobs = Vec::new();
        for message in self.jobs.iter_mut().filter(|message| message.redeliver_at <= now).take(free) {
            (message.redeliver_at, message.delivered) = (now + ACK_WAIT, true);
            jobs.push(message.job);
        }
        let claim = ClaimId(Uuid::from_u128(self.new_number().into()));
        self.log(|| format!("worker {w} claims {:?}", jobs.iter().copied().map(named).collect::<Vec<_>>()));
        if self.request(w, Request::Claim { worker, claim, jobs: jobs.clone() }, pick) {
            self.jobs.retain(|message| message.redeliver_at <= now || !jobs.contains(&message.job));
            return;
        }
        // The claim may have been granted all the same, so its attempts are released.
        for JobRef { call, attempt } in jobs {
            self.release(w, GrantRef { call, attempt, claim });
        }
    }

    fn granted(&mut self, w: usize, grant: GrantRef) {
        let (worker, job) = (self.workers[w].process, job_of(grant));
        // A late copy of a claim, perhaps of one that was given up.
        let known = self.executions.iter().any(|one| one.grant == grant);
        if known || self.given_up.contains(&grant) || self.releases.contains(&(worker, grant)) {
            return;
        }
        self.log(|| format!("worker {w} starts attempt {}", named(job)));
        if self.executions.iter().any(|one| one.runs() && one.grant.call == job.call) {
            self.report_violation(Invariant::LeasesApart, || format!("attempt {} runs beside another one", named(job)));
        }
        let (lease, ends_at) = (self.now + LEASE - LEASE_MARGIN, self.now + TIMEOUT);
        let (effect, stopped, reported, held) = (false, false, None, true);
        self.executions.push(Execution { grant, worker, lease, ends_at, effect, stopped, reported, held });
    }

    // ---- Requests ----

    /// Sends a request; false if no reply arrived. `pick` chooses the dispatcher and what goes wrong.
    fn request(&mut self, w: usize, request: Request, pick: u32) -> bool {
        if !self.nats_up || self.workers[w].cut {
            return false;
        }
        self.old_requests.push(request.clone());
        let is_lost = !self.is_prompt() && pick >> 8 & 15 == 1;
        !is_lost && self.serve(request, pick)
    }

    /// A dispatcher serves a request; false if no reply arrived.
    pub(super) fn serve(&mut self, request: Request, pick: u32) -> bool {
        let (d, commit) = ((pick >> 16) as usize % self.dispatchers.len(), CommitOutcome::of(pick));
        let is_lost = !self.is_prompt() && pick >> 8 & 15 == 2;
        match request {
            Request::Claim { worker, claim, jobs } => {
                let granted = self.transaction(d, commit, |world| {
                    let granted = jobs.into_iter().filter(|job| world.claim(worker, claim, *job));
                    granted.collect::<Vec<_>>()
                });
                let w = self.reached(worker).filter(|_| !is_lost);
                let (Some(granted), Some(w)) = (granted, w) else { return false };
                for JobRef { call, attempt } in granted {
                    self.granted(w, GrantRef { call, attempt, claim });
                }
                true
            }
            Request::Heartbeat { worker, jobs } => {
                let renewed = self.transaction(d, commit, |world| {
                    jobs.into_iter().map(|job| (job, world.renew(worker, job))).collect::<Vec<_>>()
                });
                let answered = self.reached(worker).is_some() && !is_lost;
                for (job, cancel) in renewed.into_iter().flatten().filter(|_| answered) {
                    self.renewed(worker, job, cancel);
                }
                answered
            }
            Request::Release { worker, grant } => {
                self.dispatchers[d].operations.push(Operation::new(OperationKind::Release { worker, grant }));
                true
            }
        }
    }

    /// The lease is renewed, and perhaps the user wants to stop the attempt; or it is lost.
    fn renewed(&mut self, worker: Process, job: JobRef, cancel: Option<bool>) {
        let lease = self.now + LEASE - LEASE_MARGIN;
        let Some(n) = self.held(worker, job) else { return };
        match cancel {
            None => {
                self.executions[n].stopped |= self.executions[n].runs();
                self.executions[n].held = false;
            }
            Some(cancel) => {
                self.executions[n].lease = lease;
                if cancel {
                    self.cancel_tool(worker, job);
                }
            }
        }
    }

    fn held(&self, worker: Process, job: JobRef) -> Option<usize> {
        self.executions.iter().position(|one| one.held && one.worker == worker && job_of(one.grant) == job)
    }

    fn release(&mut self, w: usize, grant: GrantRef) {
        let worker = self.workers[w].process;
        self.releases.push((worker, grant));
        self.request(w, Request::Release { worker, grant }, self.chance());
    }

    /// A dispatcher has dealt with a release.
    pub(super) fn released(&mut self, worker: Process, grant: GrantRef) {
        if self.reached(worker).is_some() {
            self.releases.retain(|release| *release != (worker, grant));
        }
    }

    // ---- Timers ----

    /// Whether a worker has something to do as time passes.
    pub(super) fn has_timers(&self) -> bool {
        !self.releases.is_empty() || self.executions.iter().any(|one| one.held)
    }

    pub(super) fn run_timers(&mut self) {
        self.expire();
        for w in 0..self.workers.len() {
            let worker = self.workers[w].process;
            let held = self.executions.iter().filter(|one| one.held && one.worker == worker);
            let jobs: Vec<JobRef> = held.map(|one| job_of(one.grant)).collect();
            if !jobs.is_empty() {
                self.request(w, Request::Heartbeat { worker, jobs }, self.chance());
            }
            for (_, grant) in self.releases.clone().into_iter().filter(|(of, _)| *of == worker) {
                self.request(w, Request::Release { worker, grant }, self.chance());
            }
        }
        for n in 0..self.executions.len() {
            self.send_report(n);
        }
    }

    /// Stops the tools whose lease has ended, or whose timeout has passed.
    fn expire(&mut self) {
        for n in 0..self.executions.len() {
            let Execution { lease, ends_at, grant, worker, .. } = self.executions[n];
            if !self.executions[n].runs() || self.now < lease.min(ends_at) || self.has(Mutation::ToolOutlivesLease) {
                continue;
            }
            self.log(|| format!("attempt {} is stopped by its worker", named(job_of(grant))));
            let is_unsafe = self.call(grant.call).record.effect == ToolEffect::Unsafe;
            if self.now < lease {
                self.stop_tool(n, ErrorClass::Timeout);
            } else if is_unsafe {
                // Nobody knows whether it had its effect.
                self.stop_tool(n, ErrorClass::Lost);
            } else if let Some(w) = self.workers.iter().position(|one| one.process == worker) {
                (self.executions[n].stopped, self.executions[n].held) = (true, false);
                self.release(w, grant);
            }
        }
    }

    // ---- Ends ----

    pub(super) fn cancel_tool(&mut self, worker: Process, job: JobRef) {
        if let Some(n) = self.held(worker, job).filter(|n| self.executions[*n].runs()) {
            self.log(|| format!("attempt {} is stopped: it is cancelled", named(job)));
            self.stop_tool(n, ErrorClass::Cancelled);
        }
    }

    /// Stops a tool and reports that.
    fn stop_tool(&mut self, n: usize, class: ErrorClass) {
        self.executions[n].stopped = true;
        self.report(n, Outcome { class: Some(class), effect_possible: true, pauses: false });
    }

    /// Reports the end of an attempt; the report is sent again until it is on record.
    pub(super) fn report(&mut self, n: usize, outcome: Outcome) {
        self.executions[n].reported = Some(outcome);
        self.send_report(n);
    }

    fn send_report(&mut self, n: usize) {
        let Execution { grant, worker, reported, held, .. } = self.executions[n];
        if let (Some(outcome), true, Some(_)) = (reported, held, self.reached(worker)) {
            let report = Report { grant, worker, outcome };
            self.old_reports.push(report);
            self.store_report(report);
        }
    }

    pub(super) fn store_report(&mut self, report: Report) {
        let (number, redeliver_at) = (self.new_number(), self.now);
        self.results.push(ResultMessage { number, report, redeliver_at });
    }

    /// The worker learns that a report is on record.
    pub(super) fn recorded(&mut self, worker: Process, job: JobRef) {
        if self.reached(worker).is_some()
            && let Some(n) = self.held(worker, job).filter(|n| self.executions[*n].reported.is_some())
        {
            self.executions[n].held = false;
        }
    }
}
