//! Messages in streams, and control messages.

use std::fmt;

use redial_proto::ErrorClass;

use super::{
    clock::Ms,
    ids::{CallNo, Claim, ConsumerNo, Process},
};

/// One attempt of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) call: CallNo,
    pub(crate) attempt: u32,
}

/// Up to four attempts, without an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jobs {
    jobs: [Job; 4],
    count: u8,
}

impl Jobs {
    pub(crate) const MAX: usize = 4;

    pub(crate) fn push(&mut self, job: Job) {
        if usize::from(self.count) < Self::MAX {
            self.jobs[usize::from(self.count)] = job;
            self.count += 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[Job] {
        &self.jobs[..usize::from(self.count)]
    }
}

/// Writes each attempt as `call.attempt`.
impl fmt::Display for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs: Vec<String> = self.as_slice().iter().map(|job| format!("{}.{}", job.call, job.attempt)).collect();
        f.write_str(&if jobs.is_empty() { "nothing".to_owned() } else { jobs.join(", ") })
    }
}

/// How an attempt ended, as its worker reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// `None` is a success.
    pub(crate) class: Option<ErrorClass>,
    pub(crate) effect_possible: bool,
    pub(crate) retry_after: Option<u64>,
}

/// A worker's report in the result stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) job: Job,
    pub(crate) claim: Claim,
    pub(crate) worker: Process,
    pub(crate) outcome: Outcome,
}

/// A message in the job stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobMessage {
    pub(crate) seq: u32,
    pub(crate) job: Job,
    pub(crate) consumer: ConsumerNo,
    pub(crate) stored_at: Ms,
    /// It was published before and appeared again: no dispatcher accounts for it.
    pub(crate) repeated: bool,
    pub(crate) deliveries: u32,
    /// It is not delivered before this.
    pub(crate) redeliver_at: Ms,
}

/// A message in the result stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultMessage {
    pub(crate) seq: u32,
    pub(crate) report: Report,
    pub(crate) redeliver_at: Ms,
}

/// An attempt that was granted to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) job: Job,
    pub(crate) claim: Claim,
}

/// A message that no stream stores.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ControlMessage {
    Claim(ClaimRequest),
    Granted { worker: Process, claim: Claim, jobs: Jobs },
    Heartbeat(Heartbeat),
    HeartbeatReply(HeartbeatReply),
    Release(Release),
    Released(Release),
    ReportRecorded { worker: Process, job: Job },
    Stop { worker: Process, job: Job },
}

/// A worker asks for attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimRequest {
    pub(crate) worker: Process,
    pub(crate) claim: Claim,
    pub(crate) jobs: Jobs,
    /// How often the last of the jobs was delivered; used by one mutation only.
    pub(crate) deliveries: u32,
}

/// A worker lists the attempts that it still holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heartbeat {
    pub(crate) worker: Process,
    /// Counts the heartbeats of the worker.
    pub(crate) number: u32,
    pub(crate) jobs: Jobs,
    /// When an answer was written that the worker had before.
    pub(crate) after: Option<Ms>,
}

/// What became of the attempts that a heartbeat listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeartbeatReply {
    pub(crate) worker: Process,
    /// That of the heartbeat.
    pub(crate) number: u32,
    /// When it was written.
    pub(crate) at: Ms,
    pub(crate) held: Jobs,
    pub(crate) lost: Jobs,
    pub(crate) cancelled: Jobs,
}

/// A worker gives a granted or requested attempt back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) worker: Process,
    pub(crate) grant: Grant,
}

impl ControlMessage {
    /// The worker that sends or receives it, and whether the worker receives it.
    pub(crate) const fn worker(&self) -> (Process, bool) {
        match self {
            Self::Claim(request) => (request.worker, false),
            Self::Heartbeat(heartbeat) => (heartbeat.worker, false),
            Self::Release(release) => (release.worker, false),
            Self::HeartbeatReply(reply) => (reply.worker, true),
            Self::Released(release) => (release.worker, true),
            Self::Granted { worker, .. } | Self::ReportRecorded { worker, .. } | Self::Stop { worker, .. } => {
                (*worker, true)
            }
        }
    }
}

impl fmt::Display for ControlMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(request) => write!(f, "the request for claim {}", request.claim),
            Self::Granted { claim, .. } => write!(f, "the reply to claim {claim}"),
            Self::Heartbeat(_) => f.write_str("a heartbeat"),
            Self::HeartbeatReply(_) => f.write_str("the reply to a heartbeat"),
            Self::Release(release) => write!(f, "the release of claim {}", release.grant.claim),
            Self::Released(release) => write!(f, "the reply to the release of claim {}", release.grant.claim),
            Self::ReportRecorded { job, .. } => {
                write!(f, "the notice that the result of call {} is on record", job.call)
            }
            Self::Stop { job, .. } => write!(f, "the notice to stop call {}", job.call),
        }
    }
}
