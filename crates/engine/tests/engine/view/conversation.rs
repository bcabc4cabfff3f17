//! Conversations to look at.

use proptest::prelude::*;
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

/// Makes a message with calls of one tool, by their ids and arguments.
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

/// What a task adds to its conversation.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    Question(usize),
    Nudge,
    Answer(usize),
    /// Bytes of the arguments, of the text beside the calls, and of the result of each.
    Exchange(usize, usize, Vec<usize>),
}

/// Generates a turn with texts of so many bytes.
pub(crate) fn turn(bytes: BoxedStrategy<usize>) -> impl Strategy<Value = Turn> {
    prop_oneof![
        1 => bytes.clone().prop_map(Turn::Question),
        1 => Just(Turn::Nudge),
        1 => bytes.clone().prop_map(Turn::Answer),
        4 => (bytes.clone(), prop_oneof![Just(0_usize), bytes.clone()], prop::collection::vec(bytes, 1..4))
            .prop_map(|(arguments, text, results)| Turn::Exchange(arguments, text, results)),
    ]
}

/// Writes a conversation as the state machine does, before a model turn.
pub(crate) fn written(turns: Vec<Turn>) -> Vec<Message> {
    let text = |bytes| "once 好 \"more\"\n".chars().cycle().take(bytes * 13 / 16).collect::<String>();
    let mut messages = vec![system("Be brief."), user("Begin.")];
    for (n, turn) in turns.into_iter().enumerate() {
        match turn {
            Turn::Question(bytes) => messages.push(user(&format!("{}?", text(bytes)))),
            Turn::Nudge => messages.push(Message { by_redial: true, ..user("Go on.") }),
            Turn::Answer(bytes) => messages.push(assistant(&format!("{}.", text(bytes)))),
            Turn::Exchange(arguments, beside, results) => {
                let ids: Vec<String> = (0..results.len()).map(|call| format!("c{n}_{call}")).collect();
                let arguments = serde_json::json!({"text": text(arguments)}).to_string();
                let asked: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), arguments.as_str())).collect();
                messages.push(calling(&text(beside), &asked));
                let answered = if n.is_multiple_of(2) { result } else { feedback };
                messages.extend(ids.iter().zip(results).map(|(id, bytes)| answered(id, &text(bytes))));
            }
        }
    }
    messages
}
