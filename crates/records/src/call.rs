//! Calls: rows of the table `calls`.

use redial_proto::{
    CallId, CallState, ClaimId, Failure, GrantRef, Help, JobRef, Repair, RetryOverride, TaskId, ToolEffect, WorkerId,
    function, turn,
};
use uuid::Uuid;

use crate::{Time, TurnOnRecord};

/// The part of a call that decisions need; no payload.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    pub id: CallId,
    pub state: CallState,
    /// Attempts started so far; while `running`, the number of the current one.
    pub attempt: u32,
    pub tool: String,
    pub pool: String,
    /// The tool's effect, as it was when the call was submitted.
    pub effect: ToolEffect,
    /// Retry settings of the call that override its tool's.
    pub retry: RetryOverride,
    /// Timeout of an attempt, in ms.
    pub timeout_ms: u64,
    /// W3C trace context of the submission.
    pub traceparent: Option<String>,
    /// No attempt starts after this.
    pub deadline_at: Time,
    /// The worker of the current or last attempt.
    pub worker: Option<WorkerId>,
    /// The claim of the current or last attempt.
    pub claim: Option<ClaimId>,
    /// The end of the current lease, while `running`.
    pub lease_until: Option<Time>,
    /// The user asked to stop it while it was running.
    pub cancel_requested: bool,
    /// How often a job of this call was published.
    pub publish_no: u32,
    /// When a job of it was last published; `None` if none was.
    pub published_at: Option<Time>,
    /// The consumer on whose subject that was; `None` if no job was published.
    pub consumer: Option<String>,
    /// It is ready, and its job is not published yet: it waits in the backlog.
    pub backlog: Option<Backlog>,
    /// When the current or last attempt was granted.
    pub started_at: Option<Time>,
    /// The first call of a chain of redrives; `None` if this is the first.
    pub origin: Option<CallId>,
    pub read_at: Time,
}

impl CallRecord {
    /// True if its client serves it and no worker does.
    pub fn is_of_client(&self) -> bool {
        self.pool == function::POOL
    }

    /// Returns the current or last attempt, with the claim under which it was granted.
    pub fn grant(&self) -> Option<GrantRef> {
        Some(GrantRef { call: self.id, attempt: self.attempt, claim: self.claim? })
    }
}

/// Which part of its tool's backlog a call waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backlog {
    /// Its job needs only room in the window.
    Job,
    /// It is a retry: its job also needs a token of the tool's retry budget.
    Retry,
}

impl Backlog {
    pub const ALL: [Self; 2] = [Self::Retry, Self::Job];

    pub const fn is_retry(self) -> bool {
        matches!(self, Self::Retry)
    }
}

/// A part of the backlog: the calls of one tenant that wait for one tool, first attempts or retries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BacklogPart {
    pub tool: String,
    pub tenant: String,
    /// First attempts or retries.
    pub backlog: Backlog,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallContent {
    /// Scope of its key.
    pub tenant: String,
    /// The conversation that its submitter named.
    pub conversation: Option<String>,
    /// Valid JSON.
    pub arguments: String,
    /// See [`NewCall::tool_version`].
    pub tool_version: Option<Uuid>,
}

/// A call to write. With a `refusal` it is on record only, and never runs.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCall {
    /// Chosen by the caller, so that writing the same batch twice writes it once.
    pub id: CallId,
    pub tool: String,
    pub pool: String,
    /// The tool's effect, pinned until the call ends.
    pub effect: ToolEffect,
    /// Scope of the key.
    pub tenant: String,
    pub key: Option<String>,
    /// Fingerprint of what was submitted; distinguishes a repeated submission from a conflict. Needed with a key.
    pub content: Option<Uuid>,
    /// The conversation that its submitter named.
    pub conversation: Option<String>,
    /// Valid JSON, as the tool gets it.
    pub arguments: String,
    /// The version of the tool that they were accepted for; `None` if they have no schema, or are refused.
    pub tool_version: Option<Uuid>,
    /// What was changed in the arguments that were sent; if it was refused, before they were found wrong.
    pub repairs: Vec<Repair>,
    /// JSON pointers to properties that the tool's schema does not declare, at most 100.
    pub undeclared: Vec<String>,
    /// What helps to correct it if it is refused, without repairs and undeclared properties.
    pub help: Option<Box<Help>>,
    /// Timeout of an attempt, in ms.
    pub timeout_ms: u64,
    /// Retry settings of the call that override its tool's.
    pub retry: Option<RetryOverride>,
    /// Publish an event at the end.
    pub notify: bool,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// No attempt starts later than this many ms after the submission.
    pub deadline_ms: u64,
    /// Why it never runs.
    pub refusal: Option<Failure>,
    /// The ended call that this one runs again.
    pub redrive_of: Option<Redrive>,
    /// Its position in the task that asked for it; `None` for a bare call.
    pub task: Option<TaskCall>,
    /// The consumer on whose subject its job is published at once; `None` if it waits in the backlog.
    pub consumer: Option<String>,
    /// The user who submitted it; `None` if a task asked for it.
    pub submitted_by: Option<String>,
}

impl NewCall {
    /// True if its client serves it and no worker does.
    pub fn is_of_client(&self) -> bool {
        self.pool == function::POOL
    }

    /// Counts the bytes of what its worker gets.
    pub fn bytes(&self) -> u32 {
        let on_record = || u32::try_from(self.arguments.len()).unwrap_or(u32::MAX);
        let of_turn = (self.pool == turn::POOL).then(|| TurnOnRecord::bytes_of(&self.arguments));
        of_turn.flatten().unwrap_or_else(on_record)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The call, and the number that its next attempt would have.
    pub job: JobRef,
    pub claim: ClaimId,
    pub worker: WorkerId,
    /// The tool that the worker believes the call to be of, and may serve.
    pub tool: String,
    /// After this it is granted only what it was granted before.
    pub not_after: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redrive {
    pub call: CallId,
    /// The first call of the chain: tools see its id as the idempotency key.
    pub origin: CallId,
}

/// The position of a call in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct TaskCall {
    pub task: TaskId,
    /// The turn that asked for it, from 1.
    pub turn: u32,
    /// 0 is the model turn itself; its tool calls count from 1.
    pub call_index: u32,
}
