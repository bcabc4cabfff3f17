//! Submissions without a reply that could not be accepted.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

list! {
    /// A part of the rejected messages.
    RejectedList {
        /// Newest first.
        rejected: RejectedItem
    }
}

/// A message that was rejected, as a whole or in part.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RejectedItem {
    /// Its number.
    pub id: i64,
    /// When it arrived.
    pub received_at: DateTime<Utc>,
    /// The code of the first error.
    pub code: String,
    /// The same in words.
    pub message: String,
    /// How many entries of it were rejected; 1 if it could not be read at all.
    pub error_count: u32,
    /// The first of these errors.
    pub errors: Vec<RejectedEntry>,
    /// The message as far as it is text: in a list its first 4,096 bytes.
    pub payload: String,
    /// Bytes of the message.
    pub payload_bytes: u32,
}

/// An entry of a message that was rejected.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RejectedEntry {
    /// Its position in the message, from 0; absent if the message is no batch.
    pub position: Option<u32>,
    /// The code.
    pub code: String,
    /// The same in words.
    pub message: String,
}
