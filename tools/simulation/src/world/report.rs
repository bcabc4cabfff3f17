//! A worker receives control messages, and reports how attempts ended.

use redial_proto::ErrorClass;

use super::{
    messages::{ControlMessage, Job, Outcome, Release, Report},
    state::World,
};

impl World {
    pub(super) fn receive(&mut self, w: usize, message: ControlMessage) {
        match message {
            ControlMessage::Granted { claim, jobs, .. } => self.granted(w, claim, &jobs),
            ControlMessage::HeartbeatReply(reply) => self.renewed(w, &reply),
            ControlMessage::Released(Release { grant, .. }) => {
                self.workers[w].releases.retain(|release| *release != grant);
            }
            ControlMessage::ReportRecorded { job, .. } => self.forget(w, job, true),
            ControlMessage::Stop { job, .. } => self.cancelled(w, job),
            ControlMessage::Claim(_) | ControlMessage::Heartbeat(_) | ControlMessage::Release(_) => {}
        }
    }

    /// Drops an attempt because its report was recorded (`ingested`) or because its lease was lost.
    pub(super) fn forget(&mut self, w: usize, job: Job, ingested: bool) {
        let Some(n) = self.workers[w].find(job) else { return };
        let held = self.workers[w].held[n];
        if !held.reported {
            if ingested {
                return;
            }
            self.ledger.executions[held.execution].stopped = true;
        }
        self.workers[w].held.remove(n);
    }

    pub(super) fn cancelled(&mut self, w: usize, job: Job) {
        let Some(n) = self.workers[w].find(job).filter(|n| !self.workers[w].held[*n].reported) else { return };
        self.log(|| format!("worker {w} stops call {}: it is cancelled", job.call));
        self.stop_tool(w, n, ErrorClass::Cancelled);
    }

    /// Stops a tool and reports that.
    pub(super) fn stop_tool(&mut self, w: usize, n: usize, class: ErrorClass) {
        self.ledger.executions[self.workers[w].held[n].execution].stopped = true;
        self.report(w, n, Outcome { class: Some(class), effect_possible: true, retry_after: None });
    }

    /// Reports the end of an attempt; the report is sent again until it is on record.
    pub(super) fn report(&mut self, w: usize, n: usize, outcome: Outcome) {
        let held = &mut self.workers[w].held[n];
        held.reported = true;
        let execution = held.execution;
        self.ledger.executions[execution].reported = Some(outcome);
        self.send_report(w, n);
    }

    /// Publishes the report of an ended attempt.
    pub(super) fn send_report(&mut self, w: usize, n: usize) {
        let worker = &self.workers[w];
        let held = &worker.held[n];
        let execution = self.ledger.executions[held.execution];
        if let (true, false, Some(outcome)) = (self.nats_up, worker.cut, execution.reported) {
            let report = Report { job: execution.job, claim: held.grant.claim, worker: worker.process, outcome };
            self.old_reports.push(report);
            self.store_report(report);
        }
    }
}
