//! What is known of a task's conversation.

use std::collections::HashMap;

use redial_proto::{Message, Role, StoredMessage, TaskId};

use crate::Time;

/// A conversation as far as it is known: what was written since the plan began, and of the earlier messages none, some
/// results, or all.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// In order.
    messages: Vec<StoredMessage>,
    is_whole: bool,
    /// Results that were read one by one, by the ids of their calls; `None` if there is none.
    results: HashMap<String, Option<String>>,
}

impl Conversation {
    /// Adds all earlier messages.
    pub(crate) fn complete(&mut self, earlier: Vec<StoredMessage>) {
        self.messages.extend(earlier);
        self.messages.sort_by_key(|message| message.seq);
        self.is_whole = true;
    }

    /// Adds what was found of these calls' results.
    pub(crate) fn add_results(&mut self, calls: Vec<String>, mut found: HashMap<String, String>) {
        self.results.extend(calls.into_iter().map(|call| {
            let result = found.remove(&call);
            (call, result)
        }));
    }

    /// Adds messages that are being written.
    pub(crate) fn write(&mut self, task: TaskId, at: Time, messages: &[(u32, Message)]) {
        let stored = |(seq, message): &(u32, Message)| StoredMessage { seq: *seq, task, at, message: message.clone() };
        self.messages.extend(messages.iter().map(stored));
        // A tool's message may stand before one that is there already.
        self.messages.sort_by_key(|message| message.seq);
    }

    /// All messages in order, if all are known.
    pub(crate) fn whole(&self) -> Option<&[StoredMessage]> {
        self.is_whole.then_some(&self.messages)
    }

    /// The content of the message that answers a call. The error: it is not known whether there is one.
    pub(crate) fn result(&self, call: &str) -> Result<Option<&str>, Unknown> {
        let answers = |stored: &&StoredMessage| {
            stored.message.role == Role::Tool && stored.message.call_id.as_deref() == Some(call)
        };
        if let Some(stored) = self.messages.iter().find(answers) {
            return Ok(Some(&stored.message.content));
        }
        match self.results.get(call) {
            Some(result) => Ok(result.as_deref()),
            None if self.is_whole => Ok(None),
            None => Err(Unknown),
        }
    }
}

/// What was asked for has not been read yet.
#[derive(Debug)]
pub(crate) struct Unknown;
