//! What the database is compared with.

use chrono::{DateTime, Utc};
use redial_proto::{CallId, TaskId};

use super::{evidence::AttemptFacts, walls::Heard};
use crate::Entry;

/// What users received, what tools did, and what the test itself broke. The database is compared with this.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Calls whose submission was answered `accepted` or `existing`, with their key.
    pub acknowledged: Vec<(CallId, Option<String>)>,
    /// Keys of submissions that the intake stream has acknowledged; their ids are unknown.
    pub intake_keys: Vec<String>,
    /// Tasks whose submission was answered `accepted` or `existing`.
    pub tasks: Vec<TaskId>,
    /// Calls whose cancel was answered `cancelled` or `running`, and when the answer arrived.
    pub cancelled: Vec<(CallId, DateTime<Utc>)>,
    /// What tools did.
    pub tool_events: Vec<Entry>,
    /// The test leaves calls that have not ended.
    pub calls_may_live: bool,
    /// Workers that were paused for longer than a lease (SIGSTOP): a process that does not run cannot stop its tools.
    pub paused: Vec<String>,
    /// When workers were killed, stopped or cut off: only what they held then may be lost.
    pub disturbed: Vec<Disturbance>,
    /// What users, and those who have no business here, received.
    pub heard: Vec<Heard>,
}

/// A time in which a worker may have lost what it held: it was killed, stopped, or cut off.
#[derive(Clone, Debug)]
pub struct Disturbance {
    /// `None` if it may have been any of them.
    pub worker: Option<String>,
    /// A time before that.
    pub from: DateTime<Utc>,
    /// Until it can hold leases again; `None` if it ended.
    pub until: Option<DateTime<Utc>>,
}

impl Disturbance {
    /// True if the attempt was held by that worker in that time.
    pub fn touches(&self, attempt: &AttemptFacts) -> bool {
        self.worker.as_ref().is_none_or(|worker| *worker == attempt.worker)
            && attempt.ended_at >= self.from
            && self.until.is_none_or(|until| attempt.started_at <= until)
    }
}
