//! What a plan needs of its task's conversation.

use std::collections::HashMap;

use redial_proto::StoredMessage;

/// What a plan needs to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// All messages of the conversation.
    Conversation,
    /// The messages that answer these calls, by the calls' ids in the conversation.
    Results(Vec<String>),
}

/// What was read for a plan.
#[derive(Debug)]
pub enum Known {
    /// All messages of the conversation, in order.
    Conversation(Vec<StoredMessage>),
    /// The contents of the messages that answer the needed calls, as far as there are any, by the calls' ids.
    Results(HashMap<String, String>),
}
