//! Timers of a worker: it sends heartbeats, stops tools whose lease has ended, and sends again what got no reply.

use redial_proto::{ErrorClass, ToolEffect};

use super::{
    clock::{CLAIM_TIMEOUT, HEARTBEAT_INTERVAL, HEARTBEAT_RETRY, LEASE, LEASE_MARGIN, Ms, REPLY_TIMEOUT, RESEND_AFTER},
    messages::{ControlMessage, Heartbeat, HeartbeatReply, Jobs, Release},
    state::World,
};
use crate::Mutation;

impl World {
    /// Runs the timers that are due.
    pub(super) fn run_timers(&mut self, w: usize) {
        self.expire(w);
        let now = self.now;
        if self.workers[w].renew_at <= now {
            self.send_heartbeat(w);
        }
        if self.workers[w].resend_at <= now {
            self.workers[w].resend_at = now + RESEND_AFTER;
            self.resend(w);
        }
    }

    /// Stops the tools whose lease has ended, or whose timeout has passed.
    pub(super) fn expire(&mut self, w: usize) {
        let (now, mut n) = (self.now, 0);
        if self.has(Mutation::ToolOutlivesLease) {
            return self.workers[w].held.iter_mut().for_each(|held| (held.lease, held.ends_at) = (Ms::MAX, Ms::MAX));
        }
        while n < self.workers[w].held.len() {
            let held = self.workers[w].held[n];
            if !held.reported && held.lease > now && held.ends_at <= now {
                self.log(|| format!("worker {w} stops call {}: its timeout has passed", held.grant.job.call));
                self.stop_tool(w, n, ErrorClass::Timeout);
            }
            if held.reported || held.lease > now || !self.stop_and_release(w, n) {
                n += 1;
            }
        }
    }

    /// Stops a tool before its end and releases its attempt; true if so. The attempt of an `unsafe` tool is reported as
    /// lost instead, because nobody knows whether it had its effect.
    pub(super) fn stop_and_release(&mut self, w: usize, n: usize) -> bool {
        let held = self.workers[w].held[n];
        let call = held.grant.job.call;
        if held.effect == ToolEffect::Unsafe {
            self.log(|| format!("worker {w} stops call {call} and reports it as lost"));
            self.stop_tool(w, n, ErrorClass::Lost);
            return false;
        }
        self.log(|| format!("worker {w} stops call {call} and releases it"));
        self.ledger.executions[held.execution].stopped = true;
        self.workers[w].held.remove(n);
        self.send_release(w, held.grant);
        true
    }

    fn send_heartbeat(&mut self, w: usize) {
        let (now, up) = (self.now, self.nats_up);
        let worker = &mut self.workers[w];
        worker.heartbeat += 1;
        worker.heartbeat_sent = now;
        worker.renew_at = now + if up && !worker.cut { REPLY_TIMEOUT } else { HEARTBEAT_RETRY };
        let (process, number, after) = (worker.process, worker.heartbeat, worker.heard_at);
        let mut heartbeat = Heartbeat { worker: process, number, jobs: Jobs::default(), after };
        worker.held.iter().for_each(|held| heartbeat.jobs.push(held.grant.job));
        if !heartbeat.jobs.as_slice().is_empty() {
            self.send(ControlMessage::Heartbeat(heartbeat));
        }
    }

    /// Sends claims, releases and reports again that got no reply.
    fn resend(&mut self, w: usize) {
        if self.workers[w].claims.first().is_some_and(|pending| self.now - pending.sent >= CLAIM_TIMEOUT) {
            self.give_up_claim(w);
        }
        for n in 0..self.workers[w].claims.len() {
            let pending = self.workers[w].claims[n];
            self.send_claim(w, &pending);
        }
        let worker = self.workers[w].process;
        for n in 0..self.workers[w].releases.len() {
            let grant = self.workers[w].releases[n];
            self.send(ControlMessage::Release(Release { worker, grant }));
        }
        for n in 0..self.workers[w].held.len() {
            if self.workers[w].held[n].reported {
                self.send_report(w, n);
            }
        }
    }

    pub(super) fn renewed(&mut self, w: usize, reply: &HeartbeatReply) {
        let worker = &mut self.workers[w];
        if worker.heartbeat != reply.number || self.now > worker.heartbeat_sent + REPLY_TIMEOUT {
            return;
        }
        worker.renew_at = worker.heartbeat_sent + HEARTBEAT_INTERVAL;
        worker.heard_at = Some(reply.at);
        let lease = worker.heartbeat_sent + LEASE - LEASE_MARGIN;
        for one in worker.held.iter_mut().filter(|one| reply.held.as_slice().contains(&one.grant.job)) {
            one.lease = one.lease.max(lease);
        }
        for job in reply.lost.as_slice() {
            self.forget(w, *job, false);
        }
        for job in reply.cancelled.as_slice() {
            self.cancelled(w, *job);
        }
    }
}
