//! What is known of a task between two events.

use std::collections::{BTreeMap, BTreeSet};

use redial_proto::{Repair, TaskCode, TaskState, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::memory::Memory;
use crate::Time;

/// A task between two events. Stored as JSON; only [`super::step`] changes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Task {
    pub(super) phase: Phase,
    pub(super) started_at: Time,
    /// The last turn that a model was asked for.
    pub(super) turn: u32,
    /// The place of the next message.
    pub(super) next_seq: u32,
    /// Calls of the turn, in order.
    pub(super) slots: Vec<Slot>,
    /// The place of the assistant message that asked for them.
    pub(super) base_seq: u32,
    pub(super) turns: u32,
    pub(super) tool_calls: u32,
    pub(super) corrections: u32,
    pub(super) usage: Usage,
    /// A call of this turn was not run because the tool calls are used up.
    pub(super) over_budget: bool,
    /// Answers without usable form in a row.
    pub(super) nudges: u32,
    /// Tools whose last calls failed and can be corrected; the empty name stands for tools that do not exist.
    pub(super) chains: BTreeMap<String, Chain>,
    pub(super) model: Model,
    /// What still runs is being stopped.
    pub(super) stop: Option<Stop>,
    /// The last answer was asked for, because of this limit, until then.
    pub(super) last: Option<Last>,
    pub(super) carried: Carried,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// Not yet its turn.
    #[default]
    Waiting,
    /// A model is asked.
    Model,
    /// Tools run.
    Tools,
    /// Over.
    Over(TaskState),
}

/// Who has the next turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Model {
    /// The agent's model.
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
    /// The user wants it.
    Cancel,
    /// A limit is reached.
    Limit(TaskCode),
}

/// A last answer was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Last {
    pub(super) code: TaskCode,
    pub(super) until: Time,
}

/// One call of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Slot {
    /// In the conversation.
    pub(super) id: String,
    /// The tool's own name, or the name as written.
    pub(super) tool: String,
    /// Fingerprint of the arguments.
    pub(super) key: String,
    /// The start of the arguments as the model wrote them: what it knows already need not be hidden from it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) written: String,
    /// Fingerprint of the tool.
    pub(super) version: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) polling: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) sequential: bool,
    pub(super) status: Status,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// Another call has to end first.
    Queued {
        arguments: String,
        repairs: Vec<Repair>,
    },
    Running,
    /// Answered with a result.
    Succeeded,
    /// Answered with an error that the model can correct.
    Correctable {
        /// There is no such tool.
        unknown_tool: bool,
    },
    /// Answered with another error.
    Failed,
}

impl Status {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Self::Queued { .. } | Self::Running)
    }
}

/// Failed calls of one tool in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chain {
    /// Turns in which a call failed.
    pub(super) failures: u32,
    /// The failed calls.
    pub(super) calls: Vec<String>,
}

/// What the conversation's next task has to know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Carried {
    /// Calls that models do not see any more.
    pub(super) pruned: BTreeSet<String>,
    pub(super) memory: Memory,
}

impl Task {
    /// Where it stands.
    pub const fn state(&self) -> TaskState {
        match self.phase {
            Phase::Waiting => TaskState::Waiting,
            Phase::Model | Phase::Tools => TaskState::Running,
            Phase::Over(state) => state,
        }
    }

    /// Model turns so far, the last answer not counted.
    pub const fn turns(&self) -> u32 {
        self.turns
    }

    /// Tool calls that were run.
    pub const fn tool_calls(&self) -> u32 {
        self.tool_calls
    }

    /// Corrections that the model made.
    pub const fn corrections(&self) -> u32 {
        self.corrections
    }

    /// What all turns cost.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// Calls that models do not see any more, by their ids.
    pub const fn pruned(&self) -> &BTreeSet<String> {
        &self.carried.pruned
    }

    /// What the conversation's next task has to know: goes into [`super::Event::Started`].
    pub fn carried(&self) -> Value {
        // Maps have text keys only, so this cannot fail.
        serde_json::to_value(&self.carried).unwrap_or_default()
    }

    /// True if a tool's call is open besides this one: its end cannot begin a turn then.
    pub fn has_open_calls_besides(&self, turn: u32, call_index: u32) -> bool {
        let open = |(n, s): (u32, &Slot)| n != call_index && s.status.is_open();
        self.turn == turn && (1..).zip(&self.slots).any(open)
    }

    pub(super) fn is_open(&self) -> bool {
        self.slots.iter().any(|call_index| call_index.status.is_open())
    }
}
