//! Messages between users and dispatchers about tasks.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    state::{TaskCode, TaskState},
    steps::TaskStep,
};
use crate::{AgentSpec, ApiError, FunctionSpec, StoredMessage, SubmitStatus, TaskId, Usage, UserRole};

/// An agent: one of the dispatcher's `agents.toml` by name, or given whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AgentRef {
    /// The name of an agent in `agents.toml`.
    Name(String),
    /// Given with the task.
    Inline(Box<AgentSpec>),
}

/// One task to submit. Sent as `tasks.submit`, or to the intake stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSubmission {
    /// What the user asks for; at most 4 MiB of text.
    pub input: String,
    /// The agent that works on it.
    pub agent: AgentRef,
    /// Your own id of the conversation that it continues or begins; at most 200 bytes. Default: a new conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Idempotency key, as for calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Functions that the client serves, besides those of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionSpec>,
    /// How long the client may take to answer a call of a function, in ms: 1 s to 24 h. Default: the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_timeout_ms: Option<u64>,
    /// Instructions for this task, after those of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The client's own notes, at most 16: they are kept with the task, and no model sees them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl TaskSubmission {
    /// A task without any of the optional fields.
    pub fn new(input: impl Into<String>, agent: AgentRef) -> Self {
        Self {
            input: input.into(),
            agent,
            conversation: None,
            key: None,
            functions: Vec::new(),
            function_timeout_ms: None,
            instructions: None,
            metadata: BTreeMap::new(),
        }
    }

    /// The role in which it is submitted: an agent that it brings along needs one of its own.
    pub const fn role(&self) -> UserRole {
        match self.agent {
            AgentRef::Name(_) => UserRole::Submit,
            AgentRef::Inline(_) => UserRole::Inline,
        }
    }
}

/// The answer to a task's submission. It is sent after the commit: `accepted` is a promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    /// `accepted`, `existing` or `rejected`.
    pub status: SubmitStatus,
    /// The task, unless rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Its state.
    #[serde(default, deserialize_with = "crate::names::shown_option", skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// Why it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// Accepted, but an operator should know: the file of agents became invalid, and the last valid agent is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl TaskResult {
    /// A submission that is not on record, and why.
    pub fn rejected(error: ApiError) -> Self {
        Self {
            status: SubmitStatus::Rejected,
            task: None,
            conversation: None,
            state: None,
            error: Some(error),
            warning: None,
        }
    }
}

/// Asks for one task and its steps. Sent as `tasks.get`; the answer is a
/// [`TaskReport`] or an [`ApiError`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskGet {
    /// The task to show.
    pub task: TaskId,
    /// Only steps after this one. Default: all.
    #[serde(default)]
    pub after_step: u32,
}

/// A task as users see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskView {
    /// The task's id.
    pub task: TaskId,
    /// Its conversation.
    pub conversation: String,
    /// The agent's name, unless it was given with the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The agent's model.
    pub model: String,
    /// What the user asks for.
    pub input: String,
    /// Its state.
    #[serde(deserialize_with = "crate::names::shown")]
    pub state: TaskState,
    /// Why it ended.
    #[serde(default, deserialize_with = "crate::names::shown_option", skip_serializing_if = "Option::is_none")]
    pub code: Option<TaskCode>,
    /// The reason in words, unless it was simply answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The model's last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Model turns.
    pub turns: u32,
    /// Tool calls that were run.
    pub tool_calls: u32,
    /// Corrections that the model made.
    pub corrections: u32,
    /// The cost of all turns: what providers told, and estimates of the rest.
    pub usage: Usage,
    /// The client's own notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// When it was accepted.
    pub submitted_at: DateTime<Utc>,
    /// The user who submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<String>,
    /// When work on it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
}

/// A task, the steps after the one that was asked for, and the messages that those steps wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReport {
    /// The task.
    #[serde(flatten)]
    pub task: TaskView,
    /// What happened, in order.
    pub steps: Vec<TaskStep>,
    /// What the steps wrote, in order.
    pub messages: Vec<StoredMessage>,
    /// True if there are more steps than one message can hold: ask again after the last one.
    pub more: bool,
}

/// Asks to stop a task. Sent as `tasks.cancel`; the answer is a [`TaskCancelReply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCancel {
    /// The task to stop.
    pub task: TaskId,
}

/// The answer to a task's cancel. `waiting` or `running`: it ends `cancelled` once everything it runs has stopped. Any
/// other state: it had already ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCancelReply {
    /// Its state now.
    #[serde(deserialize_with = "crate::names::shown")]
    pub state: TaskState,
}

/// Says that a task has new steps: published on `redial.events.<tenant>.tasks.<task>` after the commit. Only a hint; the steps
/// are asked for with [`TaskGet`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskNotice {
    /// The task.
    pub task: TaskId,
    /// Its last step.
    pub step: u32,
    /// Its state.
    #[serde(deserialize_with = "crate::names::shown")]
    pub state: TaskState,
}
