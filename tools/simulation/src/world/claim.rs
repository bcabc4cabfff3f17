//! A worker pulls jobs, claims them and starts their tools.

use super::{
    clock::{ACK_WAIT, HEARTBEAT_INTERVAL, LEASE, LEASE_MARGIN, Ms, RESEND_AFTER, TIMEOUT},
    ids::{CallNo, Claim, has_tool},
    ledger::Execution,
    messages::{ClaimRequest, ControlMessage, Grant, JobMessage, Jobs, Release},
    state::World,
    worker::{Held, PERMITS, PendingClaim},
};
use crate::{Invariant, Mutation};

impl World {
    /// Pulls jobs for the free permits and claims them.
    pub(super) fn pull(&mut self, w: usize) {
        self.drop_foreign_jobs(w);
        let (free, consumer) = (self.workers[w].free_permits(), self.workers[w].consumer);
        let (mut jobs, mut messages, mut deliveries) = (Jobs::default(), [0; PERMITS], 0);
        let now = self.now;
        let ready = |message: &&mut JobMessage| message.redeliver_at <= now && Some(message.consumer) == consumer;
        for message in self.jobs.iter_mut().filter(ready).take(free) {
            message.redeliver_at = self.now + ACK_WAIT;
            message.deliveries += 1;
            deliveries = message.deliveries;
            messages[jobs.as_slice().len()] = message.seq;
            jobs.push(message.job);
        }
        if jobs.as_slice().is_empty() {
            return;
        }
        self.check_tools(w, &jobs);
        self.claims += 1;
        let claim = self.claims;
        self.log(|| format!("worker {w} pulls {jobs} and sends claim {claim}"));
        let pending = PendingClaim { claim, jobs, deliveries, sent: now, messages };
        if self.workers[w].is_idle() {
            self.workers[w].renew_at = now + HEARTBEAT_INTERVAL;
            self.workers[w].resend_at = now + RESEND_AFTER;
        }
        self.workers[w].claims.push(pending);
        self.send_claim(w, &pending);
    }

    /// Acknowledges the jobs of tools that the worker does not have: its consumer had other workers before.
    fn drop_foreign_jobs(&mut self, w: usize) {
        if self.has(Mutation::ForeignJobsClaimed) {
            return;
        }
        let (now, tools, consumer) = (self.now, self.workers[w].tools, self.workers[w].consumer);
        let calls = &self.tables.calls;
        self.jobs.retain(|message| {
            let ready = message.redeliver_at <= now && Some(message.consumer) == consumer;
            !ready || has_tool(tools, calls[usize::from(message.job.call)].tool)
        });
    }

    fn check_tools(&mut self, w: usize, jobs: &Jobs) {
        let tools = self.workers[w].tools;
        let foreign = jobs.as_slice().iter().find(|job| !has_tool(tools, self.tool_of_call(job.call))).copied();
        if let Some(job) = foreign {
            let found = || format!("worker {w} claims call {} and does not have its tool", job.call);
            self.report_violation(Invariant::ClaimsOwnTools, found);
        }
    }

    pub(super) fn send_claim(&mut self, w: usize, pending: &PendingClaim) {
        let worker = self.workers[w].process;
        let PendingClaim { claim, jobs, deliveries, .. } = *pending;
        self.send(ControlMessage::Claim(ClaimRequest { worker, claim, jobs, deliveries }));
    }

    /// No reply arrived. The claim may have been granted all the same, so its attempts are released.
    pub(super) fn give_up_claim(&mut self, w: usize) {
        if self.workers[w].claims.is_empty() {
            return;
        }
        let pending = self.workers[w].claims.remove(0);
        self.log(|| format!("worker {w} gives up claim {}", pending.claim));
        for job in pending.jobs.as_slice() {
            self.send_release(w, Grant { job: *job, claim: pending.claim });
        }
    }

    pub(super) fn send_release(&mut self, w: usize, grant: Grant) {
        self.workers[w].releases.push(grant);
        let worker = self.workers[w].process;
        self.send(ControlMessage::Release(Release { worker, grant }));
    }

    /// Starts the granted attempts, releases those that it cannot run any more, and acknowledges the jobs.
    pub(super) fn granted(&mut self, w: usize, claim: Claim, granted: &Jobs) {
        let Some(n) = self.workers[w].claims.iter().position(|pending| pending.claim == claim) else { return };
        let pending = self.workers[w].claims.remove(n);
        self.jobs.retain(|message| !pending.messages.contains(&message.seq));
        let lease = pending.sent + LEASE - LEASE_MARGIN;
        for job in granted.as_slice() {
            let grant = Grant { job: *job, claim };
            if self.workers[w].find(*job).is_some() {
                continue;
            }
            if self.workers[w].stopping || self.now >= lease {
                self.send_release(w, grant);
            } else {
                self.start(w, grant, lease);
            }
        }
    }

    fn start(&mut self, w: usize, grant: Grant, lease: Ms) {
        self.log(|| format!("worker {w} starts call {}, attempt {}", grant.job.call, grant.job.attempt));
        let call = grant.job.call;
        self.check_runs_nowhere(call);
        let (worker, execution) = (self.workers[w].process, self.ledger.executions.len());
        let begun = Execution { job: grant.job, worker, effect: false, stopped: false, reported: None };
        self.ledger.executions.push(begun);
        let effect = self.row(call).effect;
        let ends_at = self.now + TIMEOUT;
        self.workers[w].held.push(Held { grant, effect, lease, ends_at, execution, reported: false });
    }

    /// No tool of the call runs. A paused process does not count: it cannot stop its tool in time.
    fn check_runs_nowhere(&mut self, call: CallNo) {
        let awake = self.workers.iter().filter(|worker| !worker.paused);
        let runs = |held: &Held| !held.reported && held.grant.job.call == call;
        if awake.flat_map(|worker| &worker.held).any(runs) {
            self.report_violation(Invariant::LeasesApart, || format!("call {call} runs twice at the same time"));
        }
    }
}
