//! What is known of a task so far. Steps refer to messages and to earlier steps.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use redial_proto::{Message, MessageCall, Role, StoredMessage, TaskDecision, TaskInput, TaskStep, TaskView};

/// The timeline of a task: turns steps into events, in their order.
pub(crate) struct TaskTimeline {
    pub(super) submitted_at: DateTime<Utc>,
    pub(super) conversation: String,
    pub(super) messages: BTreeMap<u32, Message>,
    /// By their ids.
    pub(super) calls: HashMap<String, MessageCall>,
    /// By the calls' ids.
    pub(super) results: HashMap<String, Message>,
    /// The model or tool of each call and when it was started, by turn and call index; call index 0 is the model.
    pub(super) started: HashMap<(u32, u32), (String, DateTime<Utc>)>,
    open_turn: Option<u32>,
}

impl TaskTimeline {
    pub(crate) fn new(task: &TaskView) -> Self {
        Self {
            submitted_at: task.submitted_at,
            conversation: task.conversation.clone(),
            messages: BTreeMap::new(),
            calls: HashMap::new(),
            results: HashMap::new(),
            started: HashMap::new(),
            open_turn: None,
        }
    }

    /// Adds the messages of the steps that follow.
    pub(crate) fn add_messages(&mut self, messages: &[StoredMessage]) {
        for StoredMessage { seq, message, .. } in messages {
            self.messages.insert(*seq, message.clone());
            self.calls.extend(message.calls.iter().map(|call| (call.id.clone(), call.clone())));
            self.results.extend(message.call_id.iter().map(|id| (id.clone(), message.clone())));
        }
    }

    /// Returns the turn that a model works on after the last step.
    pub(crate) fn open_turn(&self) -> Option<u32> {
        self.open_turn
    }

    pub(crate) fn model_message(&self, step: &TaskStep) -> Option<&Message> {
        let message = |decision: &TaskDecision| match decision {
            TaskDecision::Message { seq } => self.messages.get(seq),
            _ => None,
        };
        step.decisions.iter().filter_map(message).find(|message| message.role == Role::Assistant)
    }

    pub(super) fn remember(&mut self, step: &TaskStep) {
        if matches!(step.input, TaskInput::TurnEnded { .. }) {
            self.open_turn = None;
        }
        for decision in &step.decisions {
            match decision {
                TaskDecision::Turn { turn, model, .. } => {
                    self.open_turn = Some(*turn);
                    self.started.insert((*turn, 0), (model.clone(), step.at));
                }
                TaskDecision::Run { turn, call_index, tool, .. } => {
                    self.started.insert((*turn, *call_index), (tool.clone(), step.at));
                }
                TaskDecision::Ended { .. } => self.open_turn = None,
                _ => {}
            }
        }
    }
}
