//! Workers: they claim jobs, run their tools, keep their leases and report.
//!
//! A request of a worker is answered at once or never. It may also arrive late, or again: every request that was sent is
//! kept, and some moves play one of them.

use chrono::TimeDelta;
use redial_engine::{Time, call::renews};
use redial_proto::{ClaimId, ErrorClass, GrantRef, JobRef, ToolEffect};
use uuid::Uuid;

use super::{
    ACK_WAIT, LEASE, Process, ResultMessage, TIMEOUT, World,
    calls::Renewal,
    dispatcher::CommitOutcome,
    job_of, named,
    operations::{Operation, OperationKind},
    worker_id,
};
use crate::{Invariant, Mutation};

/// Attempts that a worker runs at the same time.
pub(super) const PERMITS: usize = 2;
/// It sends heartbeats, and again what got no reply, in this interval.
pub(super) const TIMER: TimeDelta = TimeDelta::seconds(2);
/// A worker considers its lease over this long before the database does: longer than it may take to notice.
const LEASE_MARGIN: TimeDelta = TimeDelta::seconds(3);

/// A claim is granted for so long after its worker asks for it.
const CLAIM_LASTS: TimeDelta = TimeDelta::seconds(5);
/// A claim is granted no longer than this after the worker's last answer.
pub(super) const CLAIMS_LAST: TimeDelta = TimeDelta::seconds(10);
/// A worker that heard nothing for so long claims nothing.
const SILENCE: TimeDelta = TimeDelta::milliseconds(7_500);

/// A process; another one replaces it when it dies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worker {
    pub(super) process: Process,
    /// It cannot reach anything.
    pub(super) cut: bool,
    /// When a dispatcher answered it last: those that run nothing send heartbeats, too.
    heard_at: Time,
}

/// A claim of which copies may be under way.
#[derive(Clone, Debug)]
pub(super) struct OpenClaim {
    pub(super) worker: Process,
    pub(super) claim: ClaimId,
    jobs: Vec<JobRef>,
    not_after: Time,
    /// Its worker has started what was granted of it.
    answered: bool,
}

/// An answer to a heartbeat: what became of each grant.
#[derive(Clone, Debug)]
pub(super) struct LateAnswer {
    worker: Process,
    renewed: Vec<(GrantRef, Renewal)>,
}

/// A granted attempt at its worker, and what really happened in it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is true or false whatever the others are")]
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
    /// The record has lost its grant.
    pub(super) lost: bool,
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

#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) grant: GrantRef,
    pub(super) worker: Process,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Debug)]
pub(super) enum Request {
    Claim { worker: Process, claim: ClaimId, jobs: Vec<JobRef>, not_after: Time },
    Heartbeat { worker: Process, grants: Vec<GrantRef>, held_at: Time },
    Release { worker: Process, grant: GrantRef },
}

impl World {
    pub(super) fn new_worker(&mut self) -> Worker {
        Worker { process: self.new_number(), cut: false, heard_at: self.now }
    }

    /// Kills a worker process; another one starts.
    pub(super) fn kill_worker(&mut self, w: usize) {
        let Worker { process, heard_at, .. } = self.workers[w];
        self.gone.push((process, heard_at));
        self.releases.retain(|(worker, _)| *worker != process);
        self.claims.retain(|claim| claim.worker != process);
        self.executions.iter_mut().filter(|one| one.worker == process).for_each(|one| one.held = false);
        self.workers[w] = self.new_worker();
    }

    fn reached(&self, process: Process) -> Option<usize> {
        self.workers.iter().position(|worker| worker.process == process && !worker.cut && self.nats_up)
    }

    pub(super) fn free_permits(&self, w: usize) -> usize {
        let Worker { process, cut, .. } = self.workers[w];
        let running = self.executions.iter().filter(|one| one.worker == process && one.runs()).count();
        let asked = self.claims.iter().filter(|claim| claim.worker == process && !claim.answered);
        let taken = running + asked.map(|claim| claim.jobs.len()).sum::<usize>();
        if cut { 0 } else { PERMITS.saturating_sub(taken) }
    }

    /// Lets workers that reach a database hear of it.
    pub(super) fn hear(&mut self) {
        if self.nats_up && self.postgres_up {
            let now = self.now;
            self.workers.iter_mut().filter(|worker| !worker.cut).for_each(|worker| worker.heard_at = now);
        }
    }

    // ---- Claiming ----

    pub(super) fn can_claim(&self, w: usize) -> bool {
        let hears = self.now - self.workers[w].heard_at <= SILENCE;
        hears && self.nats_up && self.free_permits(w) > 0 && self.jobs.iter().any(|job| job.redeliver_at <= self.now)
    }

    /// Pulls jobs for the free permits and claims them; starts what is granted.
    pub(super) fn claim_jobs(&mut self, w: usize, pick: u32) {
        let (now, free, Worker { process: worker, heard_at, .. }) = (self.now, self.free_permits(w), self.workers[w]);
        // What it holds already is not asked for.
        let (executions, held) = (&self.executions, self.jobs.len());
        self.jobs.retain(|message| {
            let is_held = |one: &Execution| one.held && one.worker == worker && job_of(one.grant) == message.job;
            message.redeliver_at > now || !executions.iter().any(is_held)
        });
        if self.jobs.len() < held {
            return;
        }
        let mut jobs = Vec::new();
        for message in self.jobs.iter_mut().filter(|message| message.redeliver_at <= now).take(free) {
            (message.redeliver_at, message.delivered) = (now + ACK_WAIT, true);
            // Of several copies of one job one is granted.
            if !jobs.contains(&message.job) {
                jobs.push(message.job);
            }
        }
        let claim = ClaimId(Uuid::from_u128(self.new_number().into()));
        self.log(|| format!("worker {w} claims {:?}", jobs.iter().copied().map(named).collect::<Vec<_>>()));
        let not_after = (now + CLAIM_LASTS).min(heard_at + CLAIMS_LAST);
        self.claims.push(OpenClaim { worker, claim, jobs: jobs.clone(), not_after, answered: false });
        if self.request(w, Request::Claim { worker, claim, jobs, not_after }, pick) {
            // There was one request.
            self.old_requests.retain(|request| !matches!(request, Request::Claim { claim: of, .. } if *of == claim));
            self.claims.retain(|one| one.claim != claim);
        }
    }

    /// Asks again for what got no answer. Once nothing is granted any more, gives back what it does not run: a copy may have been granted
    /// after the answer, or never answered.
    fn repeat_claims(&mut self, w: usize) {
        let worker = self.workers[w].process;
        for OpenClaim { claim, jobs, not_after, answered, .. } in
            self.claims.iter().filter(|one| one.worker == worker).cloned().collect::<Vec<_>>()
        {
            if self.now > not_after {
                self.claims.retain(|one| one.claim != claim);
                for grant in jobs.into_iter().map(|job| job.granted_to(claim)) {
                    if self.held(worker, grant).is_none() {
                        self.release(w, grant);
                    }
                }
            } else if !answered {
                self.request(w, Request::Claim { worker, claim, jobs, not_after }, self.chance());
            }
        }
    }

    /// Takes the first answer to a claim: what is granted starts, and the jobs are acknowledged.
    fn take_grants(&mut self, w: usize, claim: ClaimId, granted: Vec<JobRef>) {
        let Some(open) = self.claims.iter_mut().find(|one| one.claim == claim && !one.answered) else { return };
        open.answered = true;
        let (jobs, now) = (open.jobs.clone(), self.now);
        for grant in granted.into_iter().map(|job| job.granted_to(claim)) {
            // It is about to end, or cannot have the arguments.
            if self.chance() % 8 == 5 { self.release(w, grant) } else { self.granted(w, grant) }
        }
        self.jobs.retain(|message| message.redeliver_at <= now || !jobs.contains(&message.job));
    }

    fn granted(&mut self, w: usize, grant: GrantRef) {
        let (worker, job) = (self.workers[w].process, job_of(grant));
        self.log(|| format!("worker {w} starts attempt {}", named(job)));
        // It knows better than a record that was set back.
        if self.executions.iter().any(|one| one.held && one.worker == worker && job_of(one.grant) == job) {
            return self.release(w, grant);
        }
        if self.executions.iter().any(|one| one.runs() && one.grant.call == job.call && !one.lost) {
            self.report_violation(Invariant::LeasesApart, || format!("attempt {} runs beside another one", named(job)));
        }
        let (lease, ends_at) = (self.now + LEASE - LEASE_MARGIN, self.now + TIMEOUT);
        let (effect, stopped, reported, held, lost) = (false, false, None, true, false);
        self.executions.push(Execution { grant, worker, lease, ends_at, effect, stopped, reported, held, lost });
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

    /// Serves a request as a dispatcher does; false if no reply arrived.
    pub(super) fn serve(&mut self, request: Request, pick: u32) -> bool {
        let (d, commit) = ((pick >> 16) as usize % self.dispatchers.len(), CommitOutcome::of(pick));
        let is_lost = !self.is_prompt() && pick >> 8 & 15 == 2;
        match request {
            Request::Claim { worker, claim, jobs, not_after } => {
                let granted = self.transaction(d, commit, |world| {
                    let granted = jobs.into_iter().filter(|job| world.claim(worker, job.granted_to(claim), not_after));
                    granted.collect::<Vec<_>>()
                });
                let w = self.reached(worker).filter(|_| !is_lost);
                let (Some(granted), Some(w)) = (granted, w) else { return false };
                self.take_grants(w, claim, granted);
                true
            }
            Request::Heartbeat { worker, grants, held_at } => {
                let renewed = self.transaction(d, commit, |world| {
                    grants.into_iter().map(|grant| (grant, world.renew(worker, grant, held_at))).collect::<Vec<_>>()
                });
                let Some(renewed) = renewed else { return false };
                let (answer, answered) = (LateAnswer { worker, renewed }, self.reached(worker).is_some() && !is_lost);
                if answered {
                    self.take_answer(answer);
                    self.check_leases(worker);
                } else {
                    self.late_answers.push(answer);
                }
                answered
            }
            Request::Release { worker, grant } => {
                self.dispatchers[d].operations.push(Operation::new(OperationKind::Release { worker, grant }));
                true
            }
        }
    }

    /// Checks that after an answer that is not late, no lease of a worker outlasts that on record.
    fn check_leases(&mut self, worker: Process) {
        let outlasts = |one: &&Execution| {
            let record = &self.call(one.grant.call).record;
            renews(record, &worker_id(worker), one.grant) && record.lease_until < Some(one.lease + LEASE_MARGIN)
        };
        if let Some(one) = self.executions.iter().filter(|one| one.held && one.worker == worker).find(outlasts) {
            let job = named(job_of(one.grant));
            self.report_violation(Invariant::LeasesApart, || {
                format!("the lease of attempt {job} is shorter on record")
            });
        }
    }

    /// Takes an answer to a heartbeat, perhaps late: the leases count from when it was asked for.
    pub(super) fn take_answer(&mut self, LateAnswer { worker, renewed }: LateAnswer) {
        for (grant, renewal) in renewed {
            self.renewed(worker, grant, renewal);
        }
    }

    /// Renews the lease, and perhaps stops the attempt for its user; or takes it for lost.
    fn renewed(&mut self, worker: Process, grant: GrantRef, renewal: Renewal) {
        let any_grant = self.has(Mutation::AnswersWithoutClaim);
        let is_meant = |one: &Execution| one.grant == grant || (any_grant && job_of(one.grant) == job_of(grant));
        let Some(n) = self.executions.iter().position(|one| one.held && one.worker == worker && is_meant(one)) else {
            return;
        };
        let cancel = match renewal {
            Renewal::Lost => {
                let (record, grant) = (&self.call(grant.call).record, self.executions[n].grant);
                if renews(record, &worker_id(worker), grant) {
                    let found = || format!("attempt {} is stopped as lost", named(job_of(grant)));
                    self.report_violation(Invariant::OnlyLostIsStopped, found);
                }
                self.executions[n].stopped |= self.executions[n].runs();
                self.executions[n].held = false;
                false
            }
            Renewal::Locked { cancel } => cancel,
            Renewal::Renewed { cancel, until } => {
                self.executions[n].lease = self.executions[n].lease.max(until - LEASE_MARGIN);
                cancel
            }
        };
        if cancel {
            self.cancel_tool(worker, grant);
        }
    }

    fn held(&self, worker: Process, grant: GrantRef) -> Option<usize> {
        self.executions.iter().position(|one| one.held && one.worker == worker && one.grant == grant)
    }

    fn release(&mut self, w: usize, grant: GrantRef) {
        let worker = self.workers[w].process;
        self.releases.push((worker, grant));
        self.request(w, Request::Release { worker, grant }, self.chance());
    }

    /// Takes note that a dispatcher has dealt with a release.
    pub(super) fn released(&mut self, worker: Process, grant: GrantRef) {
        if self.reached(worker).is_some() {
            self.releases.retain(|release| *release != (worker, grant));
        }
    }

    // ---- Timers ----

    /// True if a worker has something to do as time passes.
    pub(super) fn has_timers(&self) -> bool {
        !self.releases.is_empty() || !self.claims.is_empty() || self.executions.iter().any(|one| one.held)
    }

    pub(super) fn run_timers(&mut self) {
        self.expire();
        for w in 0..self.workers.len() {
            let worker = self.workers[w].process;
            let held = self.executions.iter().filter(|one| one.held && one.worker == worker);
            let grants: Vec<GrantRef> = held.map(|one| one.grant).collect();
            if !grants.is_empty() {
                let held_at = self.now;
                self.request(w, Request::Heartbeat { worker, grants, held_at }, self.chance());
            }
            self.repeat_claims(w);
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
            let is_unsafe = self.call(grant.call).record.effect == ToolEffect::Unsafe;
            // Nobody else is granted the attempt of an unsafe one.
            let lease = if is_unsafe && !self.has(Mutation::UnsafeStopsWithLease) { ends_at } else { lease };
            if !self.executions[n].runs() || self.now < lease.min(ends_at) || self.has(Mutation::ToolOutlivesLease) {
                continue;
            }
            self.log(|| format!("attempt {} is stopped by its worker", named(job_of(grant))));
            if self.now >= ends_at {
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

    pub(super) fn cancel_tool(&mut self, worker: Process, grant: GrantRef) {
        if let Some(n) = self.held(worker, grant).filter(|n| self.executions[*n].runs()) {
            self.log(|| format!("attempt {} is stopped: it is cancelled", named(job_of(grant))));
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

    /// Tells the worker that a report is on record.
    pub(super) fn recorded(&mut self, worker: Process, grant: GrantRef) {
        if self.reached(worker).is_some()
            && let Some(n) = self.held(worker, grant).filter(|n| self.executions[*n].reported.is_some())
        {
            self.executions[n].held = false;
        }
    }
}
