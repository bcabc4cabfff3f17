//! Effects: what has to be done once a transition is on record.

use redial_proto::{CallId, GrantRef, Job, TaskId, TaskNotice, WorkerId};

use crate::{BacklogPart, Time};

/// One action after a commit. Losing any of them costs time only: what it would have started is found again
/// from what is on record.
#[derive(Clone, Debug)]
pub enum Effect {
    PublishJob(OutgoingJob),
    CancelCall(CallId),
    /// Notify a worker that the call of its attempt was cancelled.
    StopWorker {
        worker: WorkerId,
        grant: GrantRef,
    },
    /// Notify the submitter of a call that it ended.
    NotifySubmitter(CallId),
    /// Notify watchers of a task of its new step.
    NotifyWatchers {
        tenant: String,
        /// What they are told.
        notice: TaskNotice,
    },
    /// Advance a task: its inbox got an item.
    WakeTask(TaskId),
    /// Wake the sweeper: something may be due sooner than it expects.
    WakeSweeper,
    /// Wake the feeder: a call waits in the backlog.
    WakeFeeder {
        /// Where it waits.
        part: BacklogPart,
        /// Its position, if it was published before: it is perhaps before all others. Otherwise it is behind them.
        since: Option<Time>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingJob {
    pub job: Job,
    /// The consumer on whose subject it is published: its workers have the tool.
    pub consumer: String,
    /// How often a job of this call was published, this time included.
    pub publish_no: u32,
    /// W3C trace context of the submission.
    pub traceparent: Option<String>,
}
