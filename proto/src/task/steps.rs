//! The recorded steps of a task.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::{TaskCode, TaskState};
use crate::{CallId, ErrorClass, Repair};

/// One recorded step of a task: an input and the decisions it led to. Steps are written once, in the transaction that
/// carries them out, and can be replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStep {
    /// Its number, from 1, without gaps.
    pub step: u32,
    /// When, by the database's clock.
    pub at: DateTime<Utc>,
    /// What happened.
    pub input: TaskInput,
    /// What was decided.
    pub decisions: Vec<TaskDecision>,
}

/// What can happen to a task. Outcomes of calls are not repeated here: the calls' records hold them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TaskInput {
    /// No earlier task of its conversation runs.
    Started {
        /// The position of its first message.
        first_seq: u32,
        /// True if the agent's instructions must be written, because they are new to the conversation.
        system: bool,
        /// What the engine remembers of the conversation's earlier tasks, in the engine's own form.
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
        /// Its number within that turn, from 1.
        call_index: u32,
        /// The call.
        call: CallId,
    },
    /// An attempt of a call failed and will be repeated; the task decides nothing.
    Retrying {
        /// The turn.
        turn: u32,
        /// Its number within that turn, from 1; 0 is the model's own call.
        call_index: u32,
        /// The call.
        call: CallId,
        /// The tool, or the model's registered name.
        tool: String,
        /// The attempt that failed.
        attempt: u32,
        /// Why it failed.
        class: ErrorClass,
        /// The reason in words.
        message: String,
        /// When the next attempt is due.
        next_at: DateTime<Utc>,
    },
    /// The user asked to stop it.
    CancelRequested,
    /// Its timer fired: the wall time may be used up, or calls that should have stopped still run.
    Woken,
    /// Something that this version does not know: a newer one wrote it. Never written.
    #[serde(other)]
    Unknown,
}

/// What was decided about a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum TaskDecision {
    /// A message was written.
    Message {
        /// Its position in the conversation.
        seq: u32,
    },
    /// A model is asked.
    Turn {
        /// The turn, from 1.
        turn: u32,
        /// The model, by its name in `models.toml`.
        model: String,
        /// True if it must answer and gets no tools.
        last: bool,
        /// True if it is asked for the rest of an answer that was cut off, without tools.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        continues: bool,
    },
    /// A tool runs, or the client is asked to answer a call of its function.
    Run {
        /// The turn.
        turn: u32,
        /// Its number within the turn, from 1.
        call_index: u32,
        /// The id in the conversation.
        id: String,
        /// The tool.
        tool: String,
        /// What was changed in the name and the arguments, without loss.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repairs: Vec<Repair>,
        /// True for a function, which the client serves.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        client: bool,
    },
    /// A call was answered: by its tool, or without running it.
    Answered {
        /// The turn.
        turn: u32,
        /// Its number within the turn, from 1.
        call_index: u32,
        /// The id in the conversation.
        id: String,
        /// The tool.
        tool: String,
        /// False if it was answered without running anything.
        ran: bool,
        /// Why it failed; absent for a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ErrorClass>,
        /// The reason in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// How many corrections the model has left, if it may correct the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        corrections_left: Option<u32>,
    },
    /// The model's answer was not taken: the model was asked to answer again, or to continue.
    Nudged {
        /// What is wrong with the answer.
        problem: String,
        /// What was asked for.
        asked: Nudged,
        /// Which time in a row, from 1.
        time: u32,
    },
    /// An answer was taken although it has a fault, because the model had been asked often enough.
    Accepted {
        /// What is wrong with the answer.
        problem: String,
        /// How many answers in a row were not taken before.
        refused: u32,
    },
    /// The fallback model takes over.
    Fallback {
        /// The fallback model.
        model: String,
        /// The reason in words.
        because: String,
        /// Ids of the calls that are pruned from the models' view.
        pruned: Vec<String>,
    },
    /// The first model takes over again.
    Returned {
        /// The first model.
        model: String,
    },
    /// A limit is reached: calls that still run are stopped, then the model is asked for a last answer.
    LastAnswer {
        /// The limit.
        code: TaskCode,
    },
    /// The calls that still run are being stopped.
    Stopping {
        /// How many calls.
        calls: u32,
    },
    /// The task ended.
    Ended {
        /// A terminal state.
        #[serde(deserialize_with = "crate::names::shown")]
        state: TaskState,
        /// Why it ended.
        #[serde(deserialize_with = "crate::names::shown")]
        code: TaskCode,
        /// The reason in words, unless it was simply answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Something that this version does not know: a newer one wrote it. Never written.
    #[serde(other)]
    Unknown,
}

/// What a model is asked for whose answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nudged {
    /// Any answer: it was empty.
    Answer,
    /// An answer of the right form.
    Form,
    /// A shorter answer: it was cut off at the limit of tokens.
    Shorter,
    /// The rest of an answer that was cut off.
    Rest,
}
