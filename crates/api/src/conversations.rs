//! Conversations and their messages.

use chrono::{DateTime, Utc};
use redial_proto::{ForgetReply, StoredMessage, TaskId, TaskState, names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A part of the conversations.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ConversationList {
    /// The one with the newest task first.
    pub conversations: Vec<ConversationItem>,
    /// For the next page; empty at the end. A page may have few conversations, or none, and a next one.
    pub next_page_token: String,
}

crate::parts!(ConversationList, conversations: ConversationItem);

/// A conversation, by its newest task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationItem {
    /// Its name.
    pub conversation: String,
    /// Messages in it.
    pub messages: u32,
    /// Its newest task.
    pub task: TaskId,
    /// The state of that task.
    #[serde(deserialize_with = "names::shown")]
    pub state: TaskState,
    /// The declared agent of that task.
    pub agent: Option<String>,
    /// When that task was submitted.
    pub submitted_at: DateTime<Utc>,
    /// When that task ended.
    pub finished_at: Option<DateTime<Utc>>,
}

list! {
    /// A part of the messages of a conversation.
    MessageList {
        /// In the order of the conversation.
        messages: StoredMessage
    }
}

/// How far an erasure is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Erased {
    /// The erasure.
    pub erasure: Uuid,
    /// What is erased by now.
    #[serde(flatten)]
    pub reply: ForgetReply,
}
