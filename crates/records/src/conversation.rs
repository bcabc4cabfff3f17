//! Conversations as they are read for a model turn: the newest part, and of long results only what can be shown.

use redial_proto::StoredMessage;

/// How much of a conversation has to be read.
///
/// Messages are read newest first. The newest one that is not a tool's is always read, with the results behind it; any
/// further one only while both sums of bytes hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Texts together at most, in bytes, each result counted by its beginning. Beyond that no view shows a message.
    pub shown_bytes: u64,
    /// Messages together at most, in bytes as they are stored.
    pub stored_bytes: u64,
    /// What a message takes besides its texts, in bytes: counted in both sums.
    pub message_bytes: u32,
    /// Longest text of a result that is shown, in bytes.
    pub result_bytes: u32,
    /// Longest beginning of an old result, in bytes. Once the results between it and the end, each counted up to
    /// `result_bytes`, make texts longer than `shown_bytes`, no more of a result is shown.
    pub old_result_bytes: u32,
    /// Calls, by their ids in the conversation, whose results are not shown.
    pub hidden: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadConversation {
    /// In order. Of the messages before `from` only the last system message and the user's newest one.
    pub messages: Vec<ReadMessage>,
    /// From this sequence number on, no message is missing.
    pub from: u32,
}

/// A message as far as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadMessage {
    /// The message. If its content is cut, this one is the beginning of the whole.
    pub stored: StoredMessage,
    /// Set if the content is cut.
    pub cut: Option<Cut>,
}

/// What is known of a content besides its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Length of the whole content, in bytes.
    pub bytes: usize,
    /// The end of the content; empty if it is not needed.
    pub tail: String,
}

impl ReadConversation {
    pub fn whole(messages: Vec<StoredMessage>) -> Self {
        Self { messages: messages.into_iter().map(ReadMessage::whole).collect(), from: 1 }
    }

    /// Counts the bytes of the contents that were read.
    pub fn bytes(&self) -> u64 {
        let of_one =
            |read: &ReadMessage| read.stored.message.content.len() + read.cut.as_ref().map_or(0, |cut| cut.tail.len());
        self.messages.iter().map(of_one).sum::<usize>() as u64
    }
}

impl ReadMessage {
    pub const fn whole(stored: StoredMessage) -> Self {
        Self { stored, cut: None }
    }

    /// Returns the length of the whole content, in bytes.
    pub fn content_bytes(&self) -> usize {
        self.cut.as_ref().map_or(self.stored.message.content.len(), |cut| cut.bytes)
    }
}
