//! What happens to a task, as a person reads it: the same words while it happens and afterwards.
//!
//! Pure: steps and messages come in, lines come out. `redial watch` and `redial task --wait` tell it step by step,
//! `redial show` all at once and with the calls' attempts.

mod decisions;
mod page;
mod quote;
#[cfg(test)]
pub(super) mod sample;
#[cfg(test)]
mod tests;
mod totals;
mod wrap;

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use redial_proto::{Message, MessageCall, StoredMessage, TaskDecision, TaskInput, TaskStep, TaskView};

use self::{decisions::Telling, totals::offset};
pub(super) use self::{
    page::{Entry, Ink, Page},
    quote::violation,
    totals::{dollars, head, tokens},
    wrap::Wrap,
};
use crate::output;

/// Tells a story. It remembers what later steps refer to.
pub(super) struct Narrator {
    page: Page,
    submitted_at: DateTime<Utc>,
    conversation: String,
    messages: BTreeMap<u32, Message>,
    /// Calls that models asked for, by their ids.
    calls: HashMap<String, MessageCall>,
    /// What answered them, by their ids.
    results: HashMap<String, Message>,
    /// What was begun and when, by turn and call_index; call_index 0 is the model.
    begun: HashMap<(u32, u32), (String, DateTime<Utc>)>,
    /// The turn that a model works on now.
    open_turn: Option<u32>,
}

/// What of a model's turn the reader saw while it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) thought: bool,
    pub(super) text: bool,
}

impl Narrator {
    pub(super) fn new(task: &TaskView, page: Page) -> Self {
        Self {
            page,
            submitted_at: task.submitted_at,
            conversation: task.conversation.clone(),
            messages: BTreeMap::new(),
            calls: HashMap::new(),
            results: HashMap::new(),
            begun: HashMap::new(),
            open_turn: None,
        }
    }

    /// Takes in what the steps to be told wrote.
    pub(super) fn learn(&mut self, messages: &[StoredMessage]) {
        for StoredMessage { seq, message, .. } in messages {
            self.messages.insert(*seq, message.clone());
            self.calls.extend(message.calls.iter().map(|call| (call.id.clone(), call.clone())));
            self.results.extend(message.call_id.iter().map(|id| (id.clone(), message.clone())));
        }
    }

    /// The turn that a model works on now, as far as the story was told.
    pub(super) fn open_turn(&self) -> Option<u32> {
        self.open_turn
    }

    /// What the model said in this step.
    pub(super) fn said<'a>(&'a self, step: &'a TaskStep) -> Option<&'a Message> {
        let seqs = step.decisions.iter().filter_map(|decision| match decision {
            TaskDecision::Message { seq } => self.messages.get(seq),
            _ => None,
        });
        seqs.into_iter().find(|message| message.role == redial_proto::Role::Assistant)
    }

    /// One step; `extra` is what else is known of what came in. Empty if there is nothing to tell.
    pub(super) fn tell(&mut self, step: &TaskStep, seen: Seen, extra: Vec<Entry>) -> String {
        let mut entries = self.input(step);
        entries.extend(Telling::new(self, step, seen).entries());
        let first = entries.len().min(1);
        entries.splice(first..first, extra);
        self.remember(step);
        self.page.paragraph(&offset(self.submitted_at, step.at), &entries)
    }

    /// The first line.
    pub(super) fn begin(&self, task: &TaskView) -> String {
        self.page.title(&totals::title(task))
    }

    /// The last lines, once the task is over.
    pub(super) fn end(&self, task: &TaskView) -> String {
        self.page.paragraph("", &[totals::last(task)])
    }

    fn input(&self, step: &TaskStep) -> Vec<Entry> {
        match &step.input {
            TaskInput::Started { first_seq, .. } => {
                let conversation = output::one_line(&self.conversation, 200);
                let from = if *first_seq > 1 { format!(", at message {first_seq}") } else { String::new() };
                vec![Entry::new("started", Ink::Bold, format!("in conversation {conversation}{from}"))]
            }
            TaskInput::TurnEnded { turn, .. } => {
                let text = match self.begun.get(&(*turn, 0)) {
                    Some((model, since)) => format!("{model} was done after {}", totals::span(step.at - *since)),
                    None => "the model was done".to_owned(),
                };
                vec![Entry::new(format!("turn {turn}"), Ink::Cyan, text)]
            }
            TaskInput::Retrying { turn, call_index, tool, attempt, class, message, next_at, .. } => {
                let (label, tool) = match redial_proto::turn::model_name(tool) {
                    Some(model) => (format!("retry {turn}"), model),
                    None => (format!("retry {turn}.{call_index}"), tool.as_str()),
                };
                let next = format!("{} (in {})", output::time(*next_at), totals::span(*next_at - step.at));
                let message = quote::summary(message);
                let text = format!("{tool}: attempt {attempt} failed: {class}: {message}\nnext attempt at {next}");
                vec![Entry::new(label, Ink::Yellow, text)]
            }
            TaskInput::CancelRequested => vec![Entry::new("cancel", Ink::Yellow, "was asked for")],
            TaskInput::CallEnded { .. } | TaskInput::Woken => Vec::new(),
        }
    }

    fn remember(&mut self, step: &TaskStep) {
        if matches!(step.input, TaskInput::TurnEnded { .. }) {
            self.open_turn = None;
        }
        for decision in &step.decisions {
            match decision {
                TaskDecision::Turn { turn, model, .. } => {
                    self.open_turn = Some(*turn);
                    self.begun.insert((*turn, 0), (model.clone(), step.at));
                }
                TaskDecision::Run { turn, call_index, tool, .. } => {
                    self.begun.insert((*turn, *call_index), (tool.clone(), step.at));
                }
                TaskDecision::Ended { .. } => self.open_turn = None,
                _ => {}
            }
        }
    }
}
