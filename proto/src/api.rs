//! Messages between users and dispatchers: NATS request and reply, and the intake stream.
//!
//! Unknown fields are errors here: a misspelt `argument` must not be taken for a call without arguments.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use strum::{VariantArray, VariantNames};

use crate::{
    ApiError, CallId, CallState, ErrorClass, FieldError, Language, Repair, RetryOverride, WorkerIdentity, names::named,
};

/// One tool call to make durable. Sent as `calls.submit`, or to the intake subject.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The tool's name.
    pub tool: String,
    /// A JSON object that fits the tool's schema, or a JSON string that holds one, as models send it. Defects that can
    /// be repaired without loss are repaired and recorded (`docs/ARGUMENTS.md`).
    #[schemars(with = "serde_json::Value")]
    pub arguments: Box<RawValue>,
    /// Idempotency key, at most 200 bytes: the same key with the same content gets the first answer again, with other
    /// content it is a conflict. Without a key, each submission is a new call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Your own id of the conversation that this call belongs to, at most 200 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Timeout of one attempt in ms, instead of the tool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Retry settings that override the tool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryOverride>,
    /// Publish a [`CallView`] on `redial.events.<tenant>.calls.<id>` when the call has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
}

impl Submission {
    /// A call with every default.
    pub fn new(tool: impl Into<String>, arguments: Box<RawValue>) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            key: None,
            conversation: None,
            timeout_ms: None,
            retry: None,
            notify: false,
        }
    }
}

/// Several submissions in one message, at most 1,000. Each is accepted or rejected on its own.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitBatch {
    /// The calls; each is decoded on its own, so that a bad one does not affect the others.
    #[schemars(with = "Vec<Submission>")]
    pub calls: Vec<Box<RawValue>>,
}

/// The answers to a batch, in its order.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SubmitBatchReply {
    /// One for each call.
    pub results: Vec<SubmitResult>,
    /// The database's time, in the answer to an empty batch. A client that must send a batch again can tell by it which of
    /// the calls that exist its own first try wrote: those that were submitted later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<DateTime<Utc>>,
}

/// What became of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SubmitStatus {
    /// On record; it will run.
    Accepted,
    /// A submission with this key and content exists; the reply names its call.
    Existing,
    /// On record as `refused`: it will never run. The same submission under the same key is on record once; it may be
    /// submitted again once it would not be refused any more.
    Refused,
    /// Not on record: the message was wrong or could not be stored.
    Rejected,
}

named!(SubmitStatus, "a status of a submission");

/// The answer to one submission. It is sent after the commit: `accepted` is a promise.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SubmitResult {
    /// What became of it.
    pub status: SubmitStatus,
    /// The call, unless rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The call's state, unless the submission was rejected.
    #[serde(default, deserialize_with = "crate::names::shown_option", skip_serializing_if = "Option::is_none")]
    pub state: Option<CallState>,
    /// When it was submitted, if it exists already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<DateTime<Utc>>,
    /// What it waits for, if it is new and its job is not published at once: `worker` if no live worker has the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitReason>,
    /// Why it was refused or rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// What a model gets as the result of a refused call: see [`CallView::feedback`].
    #[serde(default, deserialize_with = "crate::fields::present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub feedback: Option<Box<RawValue>>,
}

impl SubmitResult {
    /// A submission that is not on record, and why.
    pub fn rejected(error: ApiError) -> Self {
        Self {
            status: SubmitStatus::Rejected,
            call: None,
            state: None,
            submitted_at: None,
            waits_for: None,
            error: Some(error),
            feedback: None,
        }
    }
}

/// Asks for one call. Sent as `calls.get`; the answer is a [`CallView`] or an [`ApiError`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetRequest {
    /// The call to show.
    pub call: CallId,
    /// The language of [`CallView::feedback`].
    #[serde(default)]
    pub language: Language,
}

/// What a call that is ready waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WaitReason {
    /// Its job is published and waits for a free worker.
    Queue,
    /// It is in the backlog: other calls of its tool are before it.
    Backlog,
    /// No live worker has its tool.
    Worker,
    /// Retries of its tool are held back, because the tool fails or has just recovered.
    Retries,
}

named!(WaitReason, "a reason to wait");

/// What a call that is ready waits for, since when, and until about when; also what a retry will wait for that is not due
/// yet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// What it waits for.
    pub reason: WaitReason,
    /// Since its submission, or since its retry was due: not yet, in state `retry_wait`.
    pub since: DateTime<Utc>,
    /// For `worker`: when one that has the tool was last seen, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_last_seen_at: Option<DateTime<Utc>>,
    /// For `retries`: the tool's first failure since its last success; absent if it succeeds again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<DateTime<Utc>>,
    /// For `retries`: when the tool succeeded again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovering_since: Option<DateTime<Utc>>,
    /// For `retries`: how many of them the tool gets per second now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries_per_second: Option<f64>,
    /// For `retries`: how many retries of the tool and the tenant are before it; absent if there are more than 100,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries_before: Option<u64>,
    /// For `retries`: about when it has its turn, at the present rate; later if retries of other tenants wait as well; absent if that
    /// cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_about: Option<DateTime<Utc>>,
}

/// A call as users see it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallView {
    /// The call's id.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// Its state.
    #[serde(deserialize_with = "crate::names::shown")]
    pub state: CallState,
    /// Attempts that were started.
    pub attempts: u32,
    /// When it was accepted.
    pub submitted_at: DateTime<Utc>,
    /// The user who submitted it, or who had an ended call run again; absent if a task asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<String>,
    /// When the next attempt starts: in state `retry_wait` when it is due; while retries of the tool are held back, about
    /// when it has its turn. Absent if that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// What it waits for, in state `ready`; in state `retry_wait` only if it will be held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waiting>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    /// The result, in state `succeeded`; `null` is a result like any other.
    #[serde(default, deserialize_with = "crate::fields::present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub output: Option<Box<RawValue>>,
    /// Why it failed, or why the last attempt did.
    #[serde(default, deserialize_with = "crate::names::known", skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The rules that its arguments break: of the end, or of the last attempt. This list, `repairs` and `undeclared` end
    /// where they take more than 64 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<FieldError>,
    /// Lossless changes that made the arguments fit the schema, or that were made before they were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<Repair>,
    /// JSON pointers to properties that were sent and that the tool's schema does not declare, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undeclared: Vec<String>,
    /// Its last 20 attempts, oldest first, the running one included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts_made: Vec<AttemptView>,
    /// What a model gets as the result of a call that ended without one: the same JSON object that the model of a task
    /// gets, to be its tool message.
    #[serde(default, deserialize_with = "crate::fields::present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub feedback: Option<Box<RawValue>>,
}

/// One attempt of a call as users see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptView {
    /// Its number, from 1.
    pub attempt: u32,
    /// The worker that ran it.
    pub worker: String,
    /// When it was granted.
    pub started_at: DateTime<Utc>,
    /// When its end was committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// How long the tool ran, in ms, by the worker's clock; absent if the worker was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Why it failed.
    #[serde(default, deserialize_with = "crate::names::known", skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When its retry was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<DateTime<Utc>>,
    /// Of a running attempt whose worker is silent: when its lease ended. One of an `unsafe` tool goes on all the same, and may end well
    /// until its timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheard_since: Option<DateTime<Utc>>,
}

/// Asks to stop a call. Sent as `calls.cancel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// The call to stop.
    pub call: CallId,
}

/// The answer to a cancel. `cancelled`: no further attempt starts. `running`: its worker was asked to stop; the call
/// then ends `cancelled`, or with its result if that was faster. Any other state: it had ended already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelReply {
    /// The call's state now.
    #[serde(deserialize_with = "crate::names::shown")]
    pub state: CallState,
}

/// Asks to remove from the registry a tool that no live worker has. Sent as `tools.forget`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetTool {
    /// The tool's name.
    pub tool: String,
}

/// The answer to [`ForgetTool`]: the tool is unknown now, until a worker registers it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgetToolReply {
    /// Calls that still wait for a worker with this tool; each ends at its deadline.
    pub waiting: u64,
}

/// Asks to accept what a worker identity registered for a tool, and what waits since then. Sent as `tools.accept`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptTool {
    /// The tool's name.
    pub tool: String,
    /// The identity; not needed if only one waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<WorkerIdentity>,
    /// The fingerprint of the change, as `redial tools` shows it. If another change waits by now, nothing is accepted.
    pub fingerprint: String,
}

/// The answer to [`AcceptTool`]: the identity may serve the tool, as it registered it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptToolReply {
    /// The identity.
    pub identity: WorkerIdentity,
    /// What was accepted, in words.
    pub changes: Vec<String>,
}
