//! A worker pulls jobs, claims them and starts their tools.

use super::{
    clock::{ACK_WAIT, ASK_AGAIN, HEARTBEAT, LEASE, MARGIN, Ms},
    ids::Claim,
    ledger::Execution,
    messages::{Grant, Jobs, Packet},
    state::World,
    worker::{Asked, Held, SLOTS},
};
use crate::Invariant;

impl World {
    /// Pulls jobs for the free slots, and asks for them.
    pub(super) fn pull(&mut self, w: usize) {
        let free = self.workers[w].free_slots();
        let (mut jobs, mut messages, mut deliveries) = (Jobs::default(), [0; SLOTS], 0);
        for message in self.jobs.iter_mut().filter(|message| message.again_at <= self.now).take(free) {
            message.again_at = self.now + ACK_WAIT;
            message.deliveries += 1;
            deliveries = message.deliveries;
            messages[jobs.as_slice().len()] = message.seq;
            jobs.push(message.job);
        }
        self.claims += 1;
        let (claim, now) = (self.claims, self.now);
        self.tell(|| format!("worker {w} pulls {jobs} and asks for them in claim {claim}"));
        let asked = Asked { claim, jobs, deliveries, sent: now, messages };
        if self.workers[w].is_idle() {
            self.workers[w].renew_at = now + HEARTBEAT;
            self.workers[w].chores_at = now + ASK_AGAIN;
        }
        self.workers[w].claims.push(asked);
        self.ask(w, &asked);
    }

    pub(super) fn ask(&mut self, w: usize, asked: &Asked) {
        let worker = self.workers[w].process;
        let Asked { claim, jobs, deliveries, .. } = *asked;
        self.send(Packet::Claim { worker, claim, jobs, deliveries });
    }

    /// There was no answer. The claim may have been granted all the same, so it is given back.
    pub(super) fn give_claim_up(&mut self, w: usize) {
        if self.workers[w].claims.is_empty() {
            return;
        }
        let asked = self.workers[w].claims.remove(0);
        self.tell(|| format!("worker {w} gives claim {} up", asked.claim));
        for job in asked.jobs.as_slice() {
            self.give_back(w, Grant { job: *job, claim: asked.claim });
        }
    }

    pub(super) fn give_back(&mut self, w: usize, grant: Grant) {
        self.workers[w].releases.push(grant);
        let worker = self.workers[w].process;
        self.send(Packet::Release { worker, grant });
    }

    /// Runs what was granted, gives back what it cannot run any more, and acknowledges the jobs.
    pub(super) fn granted(&mut self, w: usize, claim: Claim, granted: &Jobs) {
        let Some(n) = self.workers[w].claims.iter().position(|asked| asked.claim == claim) else { return };
        let asked = self.workers[w].claims.remove(n);
        self.jobs.retain(|message| !asked.messages.contains(&message.seq));
        let lease = asked.sent + LEASE - MARGIN;
        for job in granted.as_slice() {
            let grant = Grant { job: *job, claim };
            if self.workers[w].find(*job).is_some() {
                continue;
            }
            if self.workers[w].leaving || self.now >= lease {
                self.give_back(w, grant);
            } else {
                self.start(w, grant, lease);
            }
        }
    }

    fn start(&mut self, w: usize, grant: Grant, lease: Ms) {
        self.tell(|| format!("worker {w} starts call {}, attempt {}", grant.job.call, grant.job.attempt));
        let call = grant.job.call;
        // A process that stands still, or stood still a moment ago, cannot stop its tool in time.
        let awake = self.workers.iter().filter(|worker| !worker.paused);
        let runs = |held: &Held| !held.reported && held.grant.job.call == call;
        if awake.flat_map(|worker| &worker.held).any(runs) {
            self.accuse(Invariant::LeasesApart, || format!("call {call} runs twice at the same time"));
        }
        let (worker, execution) = (self.workers[w].process, self.ledger.executions.len());
        let begun = Execution { job: grant.job, worker, effect: false, stopped: false, reported: None };
        self.ledger.executions.push(begun);
        let effect = self.row(call).effect;
        self.workers[w].held.push(Held { grant, effect, lease, execution, reported: false });
    }
}
