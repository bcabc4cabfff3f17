//! Tasks: rows of the table `tasks`, with what is in their inboxes.

use std::collections::BTreeMap;

use redial_proto::{
    CallId, CallState, ErrorClass, Failure, Language, Message, TaskCode, TaskId, TaskState, TaskStep, Usage,
};
use uuid::Uuid;

use crate::{Effect, NewCall, Time, TurnTools};

/// A task as decisions about it need it: its summary and what is new, never its whole conversation.
#[derive(Clone, Debug)]
pub struct TaskRecord {
    pub id: TaskId,
    /// Scope of its conversation.
    pub tenant: String,
    pub conversation: String,
    /// Its state: `waiting` or `running`.
    pub state: TaskState,
    /// Language of the texts for its model.
    pub language: Language,
    /// The whole agent, as JSON, pinned until the task ends.
    pub spec: String,
    /// What the user wants; empty once it runs, because only its start needs that.
    pub input: String,
    /// The engine's own summary of the task as of its last step, as JSON. `None` until it starts.
    pub progress: Option<String>,
    /// Number of its last step; 0 before the first.
    pub last_step: u32,
    /// When it was accepted.
    pub submitted_at: Time,
    /// When it is due, whatever its inbox holds.
    pub wake_at: Option<Time>,
    /// W3C trace context of the submission.
    pub traceparent: Option<String>,
    pub read_at: Time,
    /// What its inbox holds, in order.
    pub inbox: Vec<InboxItem>,
    /// Set if it waits and may start now: no task of its conversation runs, and no older one waits. Never together with a
    /// cancel in the inbox.
    pub start: Option<StartInfo>,
}

/// What a task finds in its conversation when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartInfo {
    /// The sequence number of its first message.
    pub next_seq: u32,
    /// The conversation's last system message.
    pub system: Option<String>,
    /// The `progress` of the last task that wrote to the conversation, as JSON.
    pub carried: Option<String>,
}

#[derive(Clone, Debug)]
pub enum InboxItem {
    /// It was submitted, or the task before it in its conversation has ended.
    Start,
    Cancel,
    /// A call of it ended.
    Ended(EndedCall),
    /// An attempt of a call of it failed and will be retried.
    Retrying {
        call: CallId,
        /// The turn that asked for it.
        turn: u32,
        /// Its index in that turn; 0 is the model turn itself.
        call_index: u32,
        /// The tool's name, or the model's registered one.
        tool: String,
        attempt: u32,
        class: ErrorClass,
        /// The class in words.
        message: String,
        next_at: Time,
    },
}

#[derive(Clone, Debug)]
pub struct EndedCall {
    pub call: CallId,
    /// The turn that asked for it, from 1.
    pub turn: u32,
    /// Its index in that turn; 0 is the model turn itself.
    pub call_index: u32,
    /// A terminal state.
    pub state: CallState,
    /// Why it has no output. Its effect is possible only if the call ended `unknown`.
    pub failure: Option<Failure>,
    /// Its output, as it was written, in state `succeeded`.
    pub output: Option<String>,
    /// What a model was asked, as JSON; for call index 0 only.
    pub arguments: Option<String>,
}

#[derive(Clone, Debug)]
pub struct NewTask {
    /// Chosen by the caller, so that writing the same batch twice writes it once.
    pub id: TaskId,
    /// Scope of the key and of the conversation.
    pub tenant: String,
    /// The conversation that it continues or begins.
    pub conversation: String,
    pub key: Option<String>,
    /// Fingerprint of what was submitted; distinguishes a repeated submission from a conflict. Needed with a key.
    pub content: Option<Uuid>,
    /// The agent's name, unless it was given with the task.
    pub agent: Option<String>,
    pub model: String,
    /// Language of the texts for its model.
    pub language: Language,
    /// The whole agent: a [`redial_proto::AgentSpec`] as JSON.
    pub spec: String,
    pub input: String,
    /// The client's own notes.
    pub metadata: BTreeMap<String, String>,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// The user who submitted it.
    pub submitted_by: Option<String>,
    /// It is written although its conversation is being erased, and starts afterwards: nobody could be told to try again.
    pub waits_for_erasure: bool,
}

/// One decision about one task: replaces its summary, and adds what it lists.
#[derive(Clone, Debug)]
pub struct TaskTransition {
    pub task: TaskId,
    /// The number of its last step before: the guard.
    pub last_step: u32,
    /// It is this transition that starts the task.
    pub starts: bool,
    /// Its state from now on.
    pub status: TaskStatus,
    /// The engine's own summary, as JSON; `null` if the task never started.
    pub progress: String,
    /// Model turns so far.
    pub turns: u32,
    /// Tool calls that were run so far.
    pub tool_calls: u32,
    /// Corrections so far.
    pub corrections: u32,
    pub usage: Usage,
    /// New messages, each with its sequence number in the conversation.
    pub messages: Vec<(u32, Message)>,
    /// What happened and what was decided, numbered from `last_step + 1`.
    pub steps: Vec<TaskStep>,
    /// The refused ones included.
    pub calls: Vec<NewCall>,
    /// What models are offered in new turns.
    pub offers: Vec<TurnTools>,
    /// What has to be done once this is on record.
    pub effects: Vec<Effect>,
}

/// The state of a task after a transition, with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// It waits for its turn in its conversation.
    Waiting {
        /// When it is due again, whatever its inbox holds.
        wake_at: Time,
    },
    /// A model or a tool works on it.
    Running {
        /// When it is due again, whatever its inbox holds.
        wake_at: Option<Time>,
    },
    Ended(TaskOutcome),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOutcome {
    /// A terminal state.
    pub state: TaskState,
    pub code: TaskCode,
    /// The code in words, unless it was simply answered.
    pub message: Option<String>,
    pub answer: Option<String>,
}

impl TaskStatus {
    pub const fn state(&self) -> TaskState {
        match self {
            Self::Waiting { .. } => TaskState::Waiting,
            Self::Running { .. } => TaskState::Running,
            Self::Ended(outcome) => outcome.state,
        }
    }
}
