//! Conversations to look at.

use redial_proto::{ErrorClass, Message, MessageCall, Role, StoredMessage, TaskId};

pub(crate) fn system(text: &str) -> Message {
    Message::text(Role::System, text)
}

pub(crate) fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

pub(crate) fn assistant(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// Ids and arguments of calls of one tool.
pub(crate) fn calling(text: &str, calls: &[(&str, &str)]) -> Message {
    let call = |(id, arguments): &(&str, &str)| MessageCall {
        id: (*id).to_owned(),
        tool: "get_weather".to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Message { calls: calls.iter().map(call).collect(), ..assistant(text) }
}

pub(crate) fn result(call_id: &str, text: &str) -> Message {
    let (call_id, tool) = (Some(call_id.to_owned()), Some("get_weather".to_owned()));
    Message { call_id, tool, ..Message::text(Role::Tool, text) }
}

pub(crate) fn feedback(call_id: &str, text: &str) -> Message {
    Message { class: Some(ErrorClass::InvalidArguments), ..result(call_id, text) }
}

pub(crate) fn store(messages: Vec<Message>) -> Vec<StoredMessage> {
    let task = TaskId::generate();
    let stored = |(seq, message)| StoredMessage { seq, task, at: redial_engine::Time::default(), message };
    (1..).zip(messages).map(stored).collect()
}
