//! What a plan needs of its task's conversation.

use std::collections::HashMap;

use redial_records::{Reach, ReadConversation};

/// What a plan needs to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The newest part of the conversation.
    Conversation(Reach),
    /// The messages that answer these calls, by the calls' ids in the conversation.
    Results(Vec<String>),
}

/// What was read for a plan.
#[derive(Debug)]
pub enum Known {
    /// The newest part of the conversation.
    Conversation(ReadConversation),
    /// The contents of the messages that answer the needed calls, as far as there are any, by the calls' ids.
    Results(HashMap<String, String>),
}
