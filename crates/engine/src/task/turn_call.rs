//! One call of a model turn.

use redial_proto::{CallId, ErrorClass, Failure, Repair};
use serde::{Deserialize, Serialize};

/// One call that a model asked for in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnCall {
    /// Its id in the conversation.
    pub(super) id: String,
    /// The tool's own name, or the name as written.
    pub(super) tool: String,
    /// Fingerprint of the arguments.
    pub(super) key: String,
    /// The start of the arguments as the model wrote them: what the model knows already need not be hidden from it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) written: String,
    /// Fingerprint of the tool.
    pub(super) version: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) polling: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) sequential: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unknown_tool: bool,
    pub(super) status: Status,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Arguments {
    /// Checked, or as they were written if the call is refused.
    pub(super) text: String,
    /// What was changed in them, without loss.
    pub(super) repairs: Vec<Repair>,
    /// JSON pointers to properties that the schema does not declare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) undeclared: Vec<String>,
}

/// How far a call of a turn is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// Another call has to end first.
    Queued(Arguments),
    /// It is on record under this id, and has not ended.
    Running(CallId),
    Succeeded,
    /// Answered with an error that the model can correct.
    Correctable {
        unknown_tool: bool,
    },
    /// Answered with another error.
    Failed,
}

impl TurnCall {
    /// True if it failed because there is no such tool; a repetition of such a call fails as a repeated one.
    pub(super) fn is_of_unknown_tool(&self, failure: &Failure) -> bool {
        self.unknown_tool || failure.class == ErrorClass::UnknownTool
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.status, Status::Queued(_) | Status::Running(_))
    }
}
