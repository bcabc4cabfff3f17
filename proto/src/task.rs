//! Tasks: requests that a model works on with tools. Messages between users and dispatchers about them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{VariantArray, VariantNames};

use crate::{
    AgentSpec, ApiError, CallId, ErrorClass, Repair, StoredMessage, SubmitStatus, TaskId, Usage, names::named,
};

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TaskState {
    /// Another task of its conversation comes first.
    Waiting,
    /// A model or a tool works on it.
    Running,
    /// There is an answer.
    Succeeded,
    /// It ended without one, or with one that a limit forced; the code says why.
    Failed,
    /// The user stopped it.
    Cancelled,
}

named!(TaskState, "a state of a task");

impl TaskState {
    /// True if nothing can happen to the task any more.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// Why a task ended. Stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TaskCode {
    /// The model answered.
    Answered,
    /// The corrections of one tool, or of the whole task, are used up.
    CorrectionsExhausted,
    /// The turns are used up.
    TurnsExhausted,
    /// The tool calls are used up.
    ToolCallsExhausted,
    /// The tokens are used up.
    TokensExhausted,
    /// The money is used up.
    CostExhausted,
    /// The time is used up.
    TimeExhausted,
    /// The model, and its fallback if there is one, could not be asked.
    ModelFailed,
    /// The model said nothing that is an answer.
    NoAnswer,
    /// The user stopped it.
    Cancelled,
    /// A bug of Redial; the dispatcher's log has more.
    Internal,
}

named!(TaskCode, "a task code");

/// An agent: one of the dispatcher's `agents.toml` by name, or given whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AgentRef {
    /// By name.
    Name(String),
    /// Given with the task.
    Inline(Box<AgentSpec>),
}

/// One task to submit. Sent to `redial.api.tasks.submit`, or to `redial.intake.tasks`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSubmission {
    /// What the user wants, in words; at most 128 KiB.
    pub input: String,
    /// Who works on it.
    pub agent: AgentRef,
    /// The conversation that it goes on, or begins, under this id of yours; at most 200 bytes. Default: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Idempotency key, as for calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Keys and conversations are unique per tenant. Default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
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
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// Why it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// It was accepted, but somebody should know: the file of agents became bad, and the agent is that from before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl TaskResult {
    /// Not on record, for this reason.
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

/// Asks for one task, and for what happened in it after a step. Sent to `redial.api.tasks.get`; the answer is a
/// [`TaskReport`] or an [`ApiError`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskGet {
    /// Which.
    pub task: TaskId,
    /// Only steps after this one. Default: all.
    #[serde(default)]
    pub after: u32,
}

/// A task as users see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskView {
    /// Its id.
    pub task: TaskId,
    /// Its conversation.
    pub conversation: String,
    /// The agent's name, unless it was given with the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The agent's model.
    pub model: String,
    /// What the user wants.
    pub input: String,
    /// Where it stands.
    pub state: TaskState,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<TaskCode>,
    /// The same in words, unless it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the model answered at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Model turns.
    pub turns: u32,
    /// Tool calls that were run.
    pub tool_calls: u32,
    /// Corrections that the model made.
    pub corrections: u32,
    /// What all turns cost.
    pub usage: Usage,
    /// When it was accepted.
    pub submitted_at: DateTime<Utc>,
    /// When work on it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
}

/// A task, its steps after some number, and the messages that those steps wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReport {
    /// The task.
    #[serde(flatten)]
    pub task: TaskView,
    /// What happened, in order.
    pub steps: Vec<TaskStep>,
    /// What the steps wrote, in order.
    pub messages: Vec<StoredMessage>,
    /// True if there are more steps than fit one message: ask again after the last one.
    pub more: bool,
}

/// Asks to stop a task. Sent to `redial.api.tasks.cancel`; the answer is a [`TaskCancelReply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCancel {
    /// Which.
    pub task: TaskId,
}

/// The answer to a task's cancel. `waiting` or `running`: it ends `cancelled` once everything it runs has stopped. Any
/// other state: it had ended already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCancelReply {
    /// Where it stands now.
    pub state: TaskState,
}

/// "Something happened to this task": published on `redial.events.tasks.<task>` after the commit. Only a hint; what
/// happened is asked for with [`TaskGet`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskNotice {
    /// Which.
    pub task: TaskId,
    /// Its last step.
    pub step: u32,
    /// Where it stands.
    pub state: TaskState,
}

/// One recorded step of a task: what came in, and what was decided. Steps are written once, in the transaction that
/// carries them out, and can be replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStep {
    /// From 1, without gaps.
    pub n: u32,
    /// When, by the database's clock.
    pub at: DateTime<Utc>,
    /// What came in.
    pub input: TaskInput,
    /// What was decided.
    pub decisions: Vec<TaskDecision>,
}

/// What can happen to a task. Outcomes of calls are not repeated here: they stand with the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TaskInput {
    /// Its turn has come in its conversation.
    Started {
        /// The place of its first message.
        first_seq: u32,
        /// True if the agent's instructions have to be written: they are new to the conversation.
        system: bool,
        /// What the conversation's earlier tasks left behind; the engine's own.
        #[serde(default)]
        carried: Value,
    },
    /// A model's turn is over.
    TurnEnded {
        /// The turn, from 1.
        turn: u32,
        /// The call that asked the model.
        call: CallId,
    },
    /// A tool's call is over.
    CallEnded {
        /// The turn that asked for it.
        turn: u32,
        /// Its place in that turn, from 1.
        call_index: u32,
        /// The call.
        call: CallId,
    },
    /// An attempt of a call failed and will be repeated; nothing to decide.
    Retrying {
        /// The turn.
        turn: u32,
        /// Its place in that turn, from 1; 0 is the model itself.
        call_index: u32,
        /// The call.
        call: CallId,
        /// The tool, or the model's registered name.
        tool: String,
        /// The attempt that failed.
        attempt: u32,
        /// Why.
        class: ErrorClass,
        /// The same in words.
        message: String,
        /// When the next attempt is due.
        next_at: DateTime<Utc>,
    },
    /// The user wants it stopped.
    CancelRequested,
    /// Its time has come: the wall time may be over, or what was to be stopped still runs.
    Woken,
}

/// What was decided about a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum TaskDecision {
    /// A message was written.
    Message {
        /// Its place in the conversation.
        seq: u32,
    },
    /// A model is asked.
    Turn {
        /// The turn, from 1.
        turn: u32,
        /// The model, by its name in `models.toml`.
        model: String,
        /// It must answer, and gets no tools.
        last: bool,
    },
    /// A tool runs.
    Run {
        /// The turn.
        turn: u32,
        /// Its place in the turn, from 1.
        call_index: u32,
        /// The id in the conversation.
        id: String,
        /// The tool.
        tool: String,
        /// What was changed in the name and the arguments, without loss.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repairs: Vec<Repair>,
    },
    /// A call was answered: by its tool, or without running it.
    Answered {
        /// The turn.
        turn: u32,
        /// Its place in the turn, from 1.
        call_index: u32,
        /// The id in the conversation.
        id: String,
        /// The tool.
        tool: String,
        /// False if it was answered without running anything.
        ran: bool,
        /// Why it failed; none for a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ErrorClass>,
        /// The same in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// How often the model may correct it still, if it may at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        corrections_left: Option<u32>,
    },
    /// The model was asked to say it again, because its answer had no usable form.
    Nudged {
        /// What is wrong with the form.
        problem: String,
    },
    /// The fallback model takes over.
    Fallback {
        /// Which.
        model: String,
        /// Why.
        because: String,
        /// Calls that are taken out of the models' sight, by their ids.
        pruned: Vec<String>,
    },
    /// The first model goes on.
    Returned {
        /// Which.
        model: String,
    },
    /// A limit is reached: calls that still run are stopped, then the model is asked for a last answer.
    LastAnswer {
        /// Which limit.
        code: TaskCode,
    },
    /// What still runs is being stopped.
    Stopping {
        /// How many calls.
        calls: u32,
    },
    /// It is over.
    Ended {
        /// A terminal state.
        state: TaskState,
        /// Why.
        code: TaskCode,
        /// The same in words, unless it succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}
