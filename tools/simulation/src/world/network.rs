//! NATS: streams that lose messages, and messages that no stream stores.

use super::{
    dispatcher::Task,
    ids::Process,
    messages::{Job, JobMessage, Jobs, Packet, Report, ResultMessage},
    state::World,
    transaction::Fate,
};
use crate::Mutation;

impl World {
    /// Publishes a job, after the commit. NATS drops a message whose id it knows.
    pub(super) fn publish(&mut self, job: Job, publish_no: u32) {
        if !self.nats_up {
            return;
        }
        let publish_no = if self.has(Mutation::SameMessageId) { 0 } else { publish_no };
        let attempt = if self.has(Mutation::SameMessageId) { 0 } else { job.attempt };
        let id = (Job { attempt, ..job }, publish_no);
        if self.seen.contains(&id) {
            return;
        }
        self.seen.push(id);
        self.old_jobs.push(job);
        self.store_job(job);
    }

    pub(super) fn store_job(&mut self, job: Job) {
        self.seq += 1;
        self.jobs.push(JobMessage { seq: self.seq, job, deliveries: 0, again_at: 0 });
    }

    pub(super) fn store_report(&mut self, report: Report) {
        self.seq += 1;
        self.results.push(ResultMessage { seq: self.seq, report, again_at: 0 });
    }

    /// Sends a message that no stream stores: it is lost if its receiver cannot be reached.
    pub(super) fn send(&mut self, packet: Packet) {
        let (process, _) = packet.worker();
        if !self.nats_up {
            return;
        }
        match self.worker_of(process) {
            Some(w) if !self.workers[w].cut => self.packets.push(packet),
            _ => {}
        }
    }

    fn worker_of(&self, process: Process) -> Option<usize> {
        self.workers.iter().position(|worker| worker.process == process)
    }

    /// The packets that can arrive now: not at a process that stands still.
    pub(super) fn can_arrive(&self, packet: &Packet) -> bool {
        let (process, to_worker) = packet.worker();
        !to_worker || self.worker_of(process).is_none_or(|w| !self.workers[w].paused)
    }

    /// A packet arrives. `pick` says at which dispatcher, and how that fares.
    pub(super) fn deliver(&mut self, packet: Packet, pick: u32) {
        let (process, to_worker) = packet.worker();
        if to_worker {
            if let Some(w) = self.worker_of(process).filter(|w| !self.workers[*w].cut) {
                self.hear(w, packet);
            }
            return;
        }
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let fate = Fate::of(pick);
        match packet {
            Packet::Claim { worker, claim, jobs, deliveries } => {
                self.answer_claim(d, fate, (worker, claim, jobs, deliveries));
            }
            Packet::Renew { worker, beat, jobs } => self.answer_renew(d, fate, (worker, beat, jobs)),
            Packet::Release { worker, grant } => self.dispatchers[d].begin(Task::Release { worker, grant }),
            _ => {}
        }
    }

    fn answer_claim(&mut self, d: usize, fate: Fate, asked: (Process, u32, Jobs, u32)) {
        let (worker, claim, jobs, deliveries) = asked;
        let granted = self.transaction(d, fate, |world| {
            let mut granted = Jobs::default();
            for job in jobs.as_slice() {
                if let Some(job) = world.claim(worker, claim, *job, deliveries) {
                    granted.push(job);
                }
            }
            granted
        });
        if let Some(granted) = granted {
            self.tell(|| format!("dispatcher {d} grants {granted} of claim {claim}"));
            self.send(Packet::Granted { worker, claim, jobs: granted });
        }
    }

    fn answer_renew(&mut self, d: usize, fate: Fate, (worker, beat, jobs): (Process, u32, Jobs)) {
        let answer = self.transaction(d, fate, |world| {
            let (mut held, mut lost, mut cancelled) = (Jobs::default(), Jobs::default(), Jobs::default());
            for job in jobs.as_slice() {
                match world.renew(worker, *job) {
                    Some(cancel) => {
                        held.push(*job);
                        if cancel {
                            cancelled.push(*job);
                        }
                    }
                    None => lost.push(*job),
                }
            }
            Packet::Renewed { worker, beat, held, lost, cancelled }
        });
        if let Some(answer) = answer {
            self.send(answer);
        }
    }
}
