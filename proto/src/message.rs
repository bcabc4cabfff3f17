//! Messages of a conversation.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{VariantArray, VariantNames};

use crate::{ErrorClass, TaskId, names::named};

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// The agent's instructions.
    System,
    /// The user, or Redial if [`Message::by_redial`] is true.
    User,
    /// The model.
    Assistant,
    /// A tool: the result or the failure of one call of the assistant message before it.
    Tool,
}

named!(Role, "a role");

/// A call that an assistant message asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageCall {
    /// Unique in the conversation; assigned by Redial, whatever the provider sent.
    pub id: String,
    /// The tool's name: as it ran, or as the model wrote it if no such tool was offered.
    pub tool: String,
    /// The arguments: as they ran, or as the model wrote them if they did not run. Need not be JSON; what goes to a
    /// provider is always the text of a JSON object.
    pub arguments: String,
}

/// The content of one message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who wrote it.
    pub role: Role,
    /// The text. For a tool: its result as JSON text, or the feedback.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// The reasoning that the model wrote; for people, and for text protocols that show it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// Calls that an assistant message asks for, in order. Each is answered by one tool message, in the same order,
    /// directly after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<MessageCall>,
    /// For a tool message: the id of the call that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// For a tool message: the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// For a tool message: why the call failed; absent for a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// True for a user message that Redial wrote: "answer now, without tools".
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_redial: bool,
    /// Data that the provider which wrote it wants back unchanged, such as signed thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Value>,
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            thought: None,
            calls: Vec::new(),
            call_id: None,
            tool: None,
            class: None,
            by_redial: false,
            provider: None,
        }
    }
}

/// A message with its position in the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredMessage {
    /// Position in the conversation, from 1, without gaps.
    pub seq: u32,
    /// The task that it belongs to.
    pub task: TaskId,
    /// When it was written, by the database's clock.
    pub at: DateTime<Utc>,
    /// Its content.
    #[serde(flatten)]
    pub message: Message,
}
