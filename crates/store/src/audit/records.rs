//! What people's questions are answered with. The field names are those of `--json`.

use redial_api::{CallItem, LateReport};
use redial_proto::{CallId, CallState, ErrorClass, TaskId, TaskState, Waiting};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{Rejection, TaskCall, Time};

/// Calls of a worker that are looked at in one step.
const CALLS_OF_WORKER: u32 = 1_000;

/// Which calls to list. Every field narrows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub tool: Option<String>,
    pub state: Option<CallState>,
    /// Why they ended without success.
    pub class: Option<ErrorClass>,
    /// Submitted then or later.
    pub since: Option<Time>,
    /// Submitted before.
    pub until: Option<Time>,
    /// A worker that ran an attempt of them, or runs one.
    pub worker: Option<String>,
    /// The caller's conversation.
    pub conversation: Option<String>,
    /// The idempotency key, of tenant `default` unless `tenant` names another.
    pub key: Option<String>,
    pub tenant: Option<String>,
    pub task: Option<TaskId>,
    /// Only calls submitted before this one, to page on.
    pub before: Option<CallId>,
}

impl Filter {
    /// Counts the calls to look at in one step, to find `wanted`: those of a worker are found first, and those that
    /// match among them.
    pub fn step(&self, wanted: u32) -> u32 {
        if self.worker.is_some() { wanted.max(CALLS_OF_WORKER) } else { wanted }
    }
}

/// Which tasks to list. Every field narrows.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    pub state: Option<TaskState>,
    /// The conversation, of tenant `default` unless `tenant` names another.
    pub conversation: Option<String>,
    pub tenant: Option<String>,
    pub agent: Option<String>,
    /// Submitted then or later.
    pub since: Option<Time>,
    /// Submitted before.
    pub until: Option<Time>,
    /// Only tasks submitted before this one, to page on.
    pub before: Option<TaskId>,
}

/// One call with its attempts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallAudit {
    #[serde(flatten)]
    pub line: CallItem,
    /// What it waits for, in state `ready`; in state `retry_wait` only if it will be held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waiting>,
    /// Its position in the task that asked for it; `None` for a bare call.
    #[serde(flatten)]
    pub task: Option<TaskCall>,
    /// Scope of the key.
    pub tenant: String,
    /// The user who submitted it, or who had an ended call run again; `None` if a task asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<String>,
    pub pool: String,
    pub effect: String,
    /// The ended call that this one runs again.
    pub redrive_of: Option<Uuid>,
    /// No attempt starts later.
    pub deadline_at: Time,
    pub cancel_requested: bool,
    /// How often the job of the current attempt was published.
    pub publish_no: i32,
    /// As the tool gets them: as sent, but for the repairs.
    pub arguments: Box<RawValue>,
    /// What was changed in them, without loss: a list of [`redial_proto::Repair`].
    pub repairs: Option<Box<RawValue>>,
    /// Properties in them that the tool's schema does not declare: a list of JSON pointers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undeclared: Option<Box<RawValue>>,
    /// What helps to correct it, for refused calls: a [`redial_proto::Help`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<Box<RawValue>>,
    /// Broken rules, for refused calls.
    pub details: Option<Box<RawValue>>,
    /// Its attempts, the running one included.
    pub attempts_made: Vec<AttemptRecord>,
    /// Reports that arrived too late to count.
    pub late_reports: Vec<LateReport>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// From 1.
    pub attempt: i32,
    pub worker: String,
    /// When it was granted.
    pub started_at: Time,
    /// When its end was committed.
    pub ended_at: Option<Time>,
    /// How long the tool ran, in ms.
    pub duration_ms: Option<i64>,
    /// `running`, `succeeded` or `failed`.
    pub outcome: String,
    pub class: Option<String>,
    /// The class in words.
    pub message: Option<String>,
    /// When the retry was due.
    pub retry_at: Option<Time>,
    /// Of a running attempt whose worker is silent: when its lease ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheard_since: Option<Time>,
    /// Broken rules.
    pub details: Option<Box<RawValue>>,
    /// The tool's result, which may be `null`. JSON writes no result the same way, so an attempt that was read from JSON
    /// always has one: only [`Self::outcome`] says whether it counts.
    #[serde(default, deserialize_with = "present")]
    pub output: Option<Box<RawValue>>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Clone, Debug, Serialize)]
pub struct ToolRecord {
    pub name: String,
    /// As registered.
    pub spec: Box<RawValue>,
    /// By whom last.
    pub registered_by: String,
    /// When its spec last changed.
    pub registered_at: Time,
    /// Live workers that have it, and are not draining.
    pub workers: i64,
    /// When a worker that has it was last seen; `None` if that is not known any more.
    pub last_seen_at: Option<Time>,
    /// Calls that are ready and that no worker has claimed: in the queue or in the backlog.
    pub waiting: i64,
    /// Of those, the retries that are held back.
    pub waiting_retries: i64,
    /// The first failure since its last success, if its calls fail because the service is not there.
    pub failing_since: Option<Time>,
    /// When it succeeded again after an outage: for ten minutes at least, and until no retry waits.
    pub recovering_since: Option<Time>,
    /// Retries that it gets per second while it fails or recovers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries_per_second: Option<f64>,
}

/// What a worker identity registered, and what waits until an operator accepts it.
#[derive(Clone, Debug, Serialize)]
pub struct PendingTool {
    #[serde(skip)]
    pub tool: String,
    pub identity: String,
    /// The worker that registered it last.
    pub worker: String,
    /// Since when it waits as it is.
    pub since: Time,
    pub reasons: Vec<String>,
    /// As it is registered.
    pub spec: Box<RawValue>,
    /// Of the change: whoever accepts it names this.
    pub fingerprint: String,
}

/// A dead letter: a message that could not be processed.
#[derive(Clone, Debug, Serialize)]
pub struct DeadLetterRecord {
    pub id: i64,
    /// `intake` or `results`.
    pub source: String,
    /// When it arrived.
    pub received_at: Time,
    /// Of which tenant: whose submission it was, or whose calls were reported; `None` if that is not known.
    pub tenant: Option<String>,
    /// The worker identity that sent reports.
    pub identity: Option<String>,
    /// Why: the code of the first error.
    pub code: String,
    /// The code in words.
    pub message: String,
    /// How many entries of the message were rejected; 1 if it could not be read at all.
    pub error_count: u32,
    /// The first of these errors.
    pub errors: Vec<Rejection>,
    /// The message, as far as it is text.
    pub payload: String,
}
