//! What a worker does by the clock: it renews leases, stops tools whose lease has ended, and sends again.

use redial_proto::{Effect, ErrorClass};

use super::{
    clock::{ANSWER, ASK_AGAIN, GIVE_UP, HEARTBEAT, LEASE, MARGIN, Ms, RENEW_AGAIN},
    messages::{Jobs, Packet},
    state::World,
};
use crate::Mutation;

impl World {
    /// Does what is due at this time.
    pub(super) fn worker_wakes(&mut self, w: usize) {
        self.expire(w);
        let now = self.now;
        if self.workers[w].renew_at <= now {
            self.beat(w);
        }
        if self.workers[w].chores_at <= now {
            self.workers[w].chores_at = now + ASK_AGAIN;
            self.chores(w);
        }
    }

    /// Stops the tools whose lease is over.
    pub(super) fn expire(&mut self, w: usize) {
        let (now, mut n) = (self.now, 0);
        if self.has(Mutation::ToolOutlivesLease) {
            return self.workers[w].held.iter_mut().for_each(|held| held.lease = Ms::MAX);
        }
        while n < self.workers[w].held.len() {
            let held = self.workers[w].held[n];
            if held.reported || held.lease > now || !self.hand_back(w, n) {
                n += 1;
            }
        }
    }

    /// Stops a tool half-way. What may run twice is given back; true if so. It is unknown how far an `unsafe` tool came.
    pub(super) fn hand_back(&mut self, w: usize, n: usize) -> bool {
        let held = self.workers[w].held[n];
        let call = held.grant.job.call;
        if held.effect == Effect::Unsafe {
            self.tell(|| format!("worker {w} stops call {call} and reports it lost"));
            self.stop_tool(w, n, ErrorClass::Lost);
            return false;
        }
        self.tell(|| format!("worker {w} stops call {call} and gives it back"));
        self.ledger.executions[held.execution].stopped = true;
        self.workers[w].held.remove(n);
        self.give_back(w, held.grant);
        true
    }

    fn beat(&mut self, w: usize) {
        let (now, up) = (self.now, self.nats_up);
        let worker = &mut self.workers[w];
        worker.beat += 1;
        worker.beat_sent = now;
        worker.renew_at = now + if up && !worker.cut { ANSWER } else { RENEW_AGAIN };
        let (process, beat, mut jobs) = (worker.process, worker.beat, Jobs::default());
        worker.held.iter().for_each(|held| jobs.push(held.grant.job));
        if !jobs.as_slice().is_empty() {
            self.send(Packet::Renew { worker: process, beat, jobs });
        }
    }

    /// Asks again for what was not answered.
    fn chores(&mut self, w: usize) {
        if self.workers[w].claims.first().is_some_and(|asked| self.now - asked.sent >= GIVE_UP) {
            self.give_claim_up(w);
        }
        for n in 0..self.workers[w].claims.len() {
            let asked = self.workers[w].claims[n];
            self.ask(w, &asked);
        }
        let worker = self.workers[w].process;
        for n in 0..self.workers[w].releases.len() {
            let grant = self.workers[w].releases[n];
            self.send(Packet::Release { worker, grant });
        }
        for n in 0..self.workers[w].held.len() {
            if self.workers[w].held[n].reported {
                self.put(w, n);
            }
        }
    }

    pub(super) fn renewed(&mut self, w: usize, beat: u32, [held, lost, cancelled]: [&Jobs; 3]) {
        let worker = &mut self.workers[w];
        if worker.beat != beat || self.now > worker.beat_sent + ANSWER {
            return;
        }
        worker.renew_at = worker.beat_sent + HEARTBEAT;
        let lease = worker.beat_sent + LEASE - MARGIN;
        for one in worker.held.iter_mut().filter(|one| held.as_slice().contains(&one.grant.job)) {
            one.lease = one.lease.max(lease);
        }
        for job in lost.as_slice() {
            self.forget(w, *job, false);
        }
        for job in cancelled.as_slice() {
            self.cancelled(w, *job);
        }
    }
}
