//! NATS: streams that can lose messages, and control messages that no stream stores.

use redial_proto::CallState;
use redial_records::Backlog;

use super::{
    clock::MAX_JOB_AGE,
    dispatcher::OperationKind,
    ids::{ConsumerNo, Process, TOOLS, ToolNo, consumer_name},
    messages::{ClaimRequest, ControlMessage, Heartbeat, HeartbeatReply, Job, JobMessage, Jobs, Report, ResultMessage},
    state::World,
    transaction::CommitOutcome,
};
use crate::Mutation;

impl World {
    /// Publishes a job after the commit. NATS drops a message whose id it has seen. A call whose job cannot be published
    /// goes back to the backlog.
    pub(super) fn publish(&mut self, d: usize, job: Job, publish_no: u32, consumer: ConsumerNo) {
        let tool = TOOLS[usize::from(self.tool_of_call(job.call))];
        let feeder = &mut self.dispatchers[d].feeder;
        feeder.windows.arrived(&consumer_name(consumer), tool);
        feeder.published = true;
        if !self.nats_up {
            return self.requeue(job, publish_no);
        }
        let publish_no = if self.has(Mutation::SameMessageId) { 0 } else { publish_no };
        let attempt = if self.has(Mutation::SameMessageId) { 0 } else { job.attempt };
        let id = (Job { attempt, ..job }, publish_no);
        if self.seen.contains(&id) {
            return;
        }
        self.seen.push(id);
        self.old_jobs.push((job, consumer));
        self.store_job(job, consumer, false);
        self.check_publication(d, consumer, self.tool_of_call(job.call));
    }

    /// `requeue_jobs.sql`.
    fn requeue(&mut self, job: Job, publish_no: u32) {
        let row = &mut self.tables.calls[usize::from(job.call)];
        let unclaimed = row.state == CallState::Ready && row.backlog.is_none();
        if self.postgres_up && unclaimed && row.publish_no == publish_no {
            row.put_back(Some(Backlog::Job));
        }
    }

    pub(super) fn store_job(&mut self, job: Job, consumer: ConsumerNo, repeated: bool) {
        self.seq += 1;
        let (seq, stored_at) = (self.seq, self.now);
        self.jobs.push(JobMessage { seq, job, consumer, stored_at, repeated, deliveries: 0, redeliver_at: 0 });
    }

    /// The jobs of a tool on the stream that nobody has claimed, delivered or not.
    pub(super) fn jobs_of(&self, consumer: ConsumerNo, tool: ToolNo) -> impl Iterator<Item = &JobMessage> {
        self.jobs
            .iter()
            .filter(move |message| message.consumer == consumer && self.tool_of_call(message.job.call) == tool)
    }

    /// The stream drops jobs that nobody took.
    pub(super) fn drop_old_jobs(&mut self) {
        let oldest = self.now - MAX_JOB_AGE;
        self.jobs.retain(|message| message.stored_at > oldest);
    }

    pub(super) fn store_report(&mut self, report: Report) {
        self.seq += 1;
        self.results.push(ResultMessage { seq: self.seq, report, redeliver_at: 0 });
    }

    /// Sends a control message; it is lost if its worker cannot be reached.
    pub(super) fn send(&mut self, message: ControlMessage) {
        let (process, _) = message.worker();
        if !self.nats_up {
            return;
        }
        match self.worker_of(process) {
            Some(w) if !self.workers[w].cut => self.control_messages.push(message),
            _ => {}
        }
    }

    fn worker_of(&self, process: Process) -> Option<usize> {
        self.workers.iter().position(|worker| worker.process == process)
    }

    /// Whether a control message can arrive now: a paused process receives nothing.
    pub(super) fn can_deliver(&self, message: &ControlMessage) -> bool {
        let (process, to_worker) = message.worker();
        !to_worker || self.worker_of(process).is_none_or(|w| !self.workers[w].paused)
    }

    /// Delivers a control message. `pick` chooses the dispatcher and how its transaction ends.
    pub(super) fn deliver(&mut self, message: ControlMessage, pick: u32) {
        let (process, to_worker) = message.worker();
        if to_worker {
            if let Some(w) = self.worker_of(process).filter(|w| !self.workers[*w].cut) {
                self.receive(w, message);
            }
            return;
        }
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let commit = CommitOutcome::of(pick);
        match message {
            ControlMessage::Claim(request) => self.reply_to_claim(d, commit, &request),
            ControlMessage::Heartbeat(heartbeat) => self.reply_to_heartbeat(d, commit, &heartbeat),
            ControlMessage::Release(release) => self.dispatchers[d].begin(OperationKind::Release(release)),
            _ => {}
        }
    }

    fn reply_to_claim(&mut self, d: usize, commit: CommitOutcome, request: &ClaimRequest) {
        let ClaimRequest { worker, claim, .. } = *request;
        let granted = self.transaction(d, commit, |world| {
            let mut granted = Jobs::default();
            for job in request.jobs.as_slice() {
                if let Some(job) = world.claim(worker, claim, *job, request.deliveries) {
                    granted.push(job);
                }
            }
            granted
        });
        if let Some(granted) = granted {
            self.log(|| format!("dispatcher {d} grants {granted} of claim {claim}"));
            self.send(ControlMessage::Granted { worker, claim, jobs: granted });
        }
    }

    fn reply_to_heartbeat(&mut self, d: usize, commit: CommitOutcome, heartbeat: &Heartbeat) {
        let Heartbeat { worker, number, jobs, after } = *heartbeat;
        let reply = self.transaction(d, commit, |world| {
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
            if let Some(row) = world.tables.workers.iter_mut().find(|row| row.process == worker) {
                row.heard_after = after;
            }
            HeartbeatReply { worker, number, at: world.now, held, lost, cancelled }
        });
        if let Some(reply) = reply {
            self.send(ControlMessage::HeartbeatReply(reply));
        }
    }
}
