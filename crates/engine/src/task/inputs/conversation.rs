//! What is known of a task's conversation.

use std::collections::HashMap;

use redial_proto::{Message, Role, StoredMessage, TaskId};
use redial_records::{ReadConversation, ReadMessage};

use crate::Time;

/// A conversation as far as it is known: what was written since the plan began, and of the earlier messages none, some
/// results, those that a view needs, or all.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// What was read, with what was written since the plan began.
    known: ReadConversation,
    extent: Extent,
    /// Results that were read one by one, by the ids of their calls; `None` if there is none.
    results: HashMap<String, Option<String>>,
}

/// What was read of the earlier messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Extent {
    #[default]
    Nothing,
    ForView,
    Whole,
}

impl Conversation {
    /// Makes a conversation of which all earlier messages are known.
    pub(crate) fn whole(earlier: Vec<StoredMessage>) -> Self {
        Self { known: ReadConversation::whole(earlier), extent: Extent::Whole, results: HashMap::new() }
    }

    /// Adds the earlier messages that a view needs.
    pub(crate) fn add_read(&mut self, read: ReadConversation) {
        self.known.from = read.from;
        self.known.messages.extend(read.messages);
        self.known.messages.sort_by_key(|read| read.stored.seq);
        self.extent = Extent::ForView;
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
        self.known.messages.extend(messages.iter().map(stored).map(ReadMessage::whole));
        // A tool's message may stand before one that is there already.
        self.known.messages.sort_by_key(|read| read.stored.seq);
    }

    /// Returns what a view needs, if it is known.
    pub(crate) fn for_view(&self) -> Option<&ReadConversation> {
        (self.extent != Extent::Nothing).then_some(&self.known)
    }

    /// Returns the content of the message that answers a call. The error: it is not known whether there is one.
    pub(crate) fn result(&self, call: &str) -> Result<Option<&str>, Unknown> {
        let answers = |read: &&ReadMessage| {
            let message = &read.stored.message;
            read.cut.is_none() && message.role == Role::Tool && message.call_id.as_deref() == Some(call)
        };
        if let Some(read) = self.known.messages.iter().find(answers) {
            return Ok(Some(&read.stored.message.content));
        }
        match self.results.get(call) {
            Some(result) => Ok(result.as_deref()),
            None if self.extent == Extent::Whole => Ok(None),
            None => Err(Unknown),
        }
    }
}

/// What was asked for has not been read yet.
#[derive(Debug)]
pub(crate) struct Unknown;
