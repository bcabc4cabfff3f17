//! What is known of a task between two events.

use std::collections::{BTreeMap, BTreeSet};

use redial_proto::{CallId, TaskCode, TaskState, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{memory::Memory, turn_call::TurnCall};
use crate::Time;

/// A task between two events. Stored as JSON; only [`super::step`] changes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Task {
    pub(super) phase: Phase,
    pub(super) started_at: Time,
    /// The sequence number of the next message.
    pub(super) next_seq: u32,
    /// Model turns so far, the last answer not counted.
    pub(super) turns: u32,
    pub(super) tool_calls: u32,
    pub(super) corrections: u32,
    pub(super) usage: Usage,
    /// Answers without usable form in a row.
    pub(super) nudges: u32,
    /// Answers in a row that were cut off, and for which a shorter one was asked.
    #[serde(skip_serializing_if = "is_first")]
    pub(super) cut_offs: u32,
    /// The answer so far, of which the rest is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) partial: Option<Partial>,
    /// Tools whose last calls failed and can be corrected; the empty name stands for tools that do not exist.
    pub(super) chains: BTreeMap<String, Chain>,
    pub(super) model: Model,
    pub(super) carried: Carried,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// Its turn in its conversation has not come.
    #[default]
    Waiting,
    /// A model is asked.
    Asking(Asking),
    /// Calls of a turn are open.
    Calling(Calling),
    Ended(TaskState),
}

/// An answer that was cut off, while its rest is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Partial {
    /// What was said so far.
    pub(super) text: String,
    /// How often the rest was asked for.
    pub(super) asked: u32,
}

/// A model turn under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Asking {
    /// The turn, from 1.
    pub(super) turn: u32,
    pub(super) call: CallId,
    /// Set if this is the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<LastAnswer>,
    /// Set if it is asked for the rest of an answer: [`Task::partial`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) continues: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<Stop>,
}

/// A turn whose calls have not all been answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Calling {
    /// The turn, from 1.
    pub(super) turn: u32,
    /// The sequence number of the assistant message that asked for the calls.
    pub(super) base_seq: u32,
    /// Its calls, in order.
    pub(super) calls: Vec<TurnCall>,
    /// A call of this turn was not run because the task's tool calls are used up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) over_budget: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<Stop>,
}

impl Calling {
    /// Adds a call; returns its position.
    pub(super) fn push(&mut self, call: TurnCall) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    pub(super) fn is_open(&self) -> bool {
        self.calls.iter().any(TurnCall::is_open)
    }
}

/// Which model gets the next turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Model {
    #[default]
    First,
    /// The fallback model, until a call of this tool succeeds.
    FallbackFor(String),
    /// The fallback model, because the first one could not be asked.
    FirstFailed,
}

/// Why everything that still runs is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stop {
    Cancel,
    Limit(TaskCode),
}

/// Why and until when a model is asked for a last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastAnswer {
    pub(super) code: TaskCode,
    pub(super) until: Time,
}

/// Failed calls of one tool in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chain {
    /// Turns in which a call failed.
    pub(super) failures: u32,
    pub(super) calls: Vec<String>,
}

/// What the conversation's next task has to know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Carried {
    /// Calls that models do not see any more.
    pub(super) pruned: BTreeSet<String>,
    pub(super) memory: Memory,
    /// A model has called the built-in tool that reads on in a result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_read_on: bool,
}

impl Task {
    /// Returns its state as it is stored.
    pub const fn state(&self) -> TaskState {
        match self.phase {
            Phase::Waiting => TaskState::Waiting,
            Phase::Asking(_) | Phase::Calling(_) => TaskState::Running,
            Phase::Ended(state) => state,
        }
    }

    /// Counts the model turns so far, without the last answer.
    pub const fn turns(&self) -> u32 {
        self.turns
    }

    pub const fn tool_calls(&self) -> u32 {
        self.tool_calls
    }

    /// Counts the corrections that the model made.
    pub const fn corrections(&self) -> u32 {
        self.corrections
    }

    /// Returns the cost of all turns.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the calls that models do not see any more, by their ids in the conversation.
    pub const fn pruned(&self) -> &BTreeSet<String> {
        &self.carried.pruned
    }

    /// True if a model of the conversation has called the built-in tool that reads on in a result: it must stay
    /// offered.
    pub const fn has_read_on(&self) -> bool {
        self.carried.has_read_on
    }

    /// Returns what the conversation's next task has to know: goes into [`super::Event::Started`].
    pub fn carried(&self) -> Value {
        // Maps have text keys only, so this cannot fail.
        serde_json::to_value(&self.carried).unwrap_or_default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_first(number: &u32) -> bool {
    *number == 0
}

impl Phase {
    /// Returns why everything that still runs is being stopped, if it is.
    pub(super) const fn stop(&self) -> Option<Stop> {
        match self {
            Self::Asking(asking) => asking.stop,
            Self::Calling(calling) => calling.stop,
            Self::Waiting | Self::Ended(_) => None,
        }
    }

    /// Returns the last answer that a model is asked for, if it is.
    pub(super) const fn last(&self) -> Option<LastAnswer> {
        match self {
            Self::Asking(asking) => asking.last,
            Self::Waiting | Self::Calling(_) | Self::Ended(_) => None,
        }
    }
}
