//! The states of a task, and why it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{VariantArray, VariantNames};

use crate::names::named;

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TaskState {
    /// An earlier task of its conversation still runs.
    Waiting,
    /// A model or a tool works on it.
    Running,
    /// The model answered.
    Succeeded,
    /// It ended without one, or with one that a limit forced; the code says why.
    Failed,
    /// The user stopped it.
    Cancelled,
    /// A state that this version does not know: a newer one wrote it. Only views show it; it is never written or read.
    #[serde(skip_deserializing)]
    Other,
}

named!(TaskState, "a state of a task", other);

impl TaskState {
    /// True if nothing can happen to the task any more.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running | Self::Other)
    }
}

/// Why a task ended. Stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TaskCode {
    /// The model answered.
    Answered,
    /// The model answered, and the answer is cut off at its limit of tokens.
    AnswerCutOff,
    /// The corrections of one tool, or of the task, are used up.
    CorrectionsExhausted,
    /// The turns are used up.
    TurnsExhausted,
    /// The tool calls are used up.
    ToolCallsExhausted,
    /// The tokens are used up.
    TokensExhausted,
    /// The money is used up.
    CostExhausted,
    /// There is a limit of money, and a model whose turns have no price: whether the limit is kept is unknown.
    CostUnknown,
    /// The time is used up.
    TimeExhausted,
    /// Neither the model nor its fallback, if there is one, could be asked.
    ModelFailed,
    /// The model's reply held no answer.
    NoAnswer,
    /// The user stopped it.
    Cancelled,
    /// A bug of Redial; the dispatcher's log has more.
    Internal,
    /// A reason that this version does not know: a newer one wrote it. Only views show it; it is never written or read.
    #[serde(skip_deserializing)]
    Other,
}

named!(TaskCode, "a task code", other);
