//! A conversation in which every call has its result.
//!
//! The engine already provides valid conversations. This does not rely on it, because a provider that gets a call without
//! a result refuses the conversation in every later request as well.

use std::borrow::Cow;

use redial_proto::{Language, Message, Role};
use serde_json::{Map, Value};

use crate::placeholders;

/// A part of the conversation.
pub(crate) enum Part<'a> {
    System(&'a str),
    User {
        text: &'a str,
        by_redial: bool,
    },
    /// A message of the model with its calls and their results. Never empty.
    Model {
        message: &'a Message,
        calls: Vec<Call<'a>>,
    },
}

/// A call with its result.
#[derive(Clone)]
pub(crate) struct Call<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    /// The text of a JSON object; `{}` if the model wrote anything else.
    pub(crate) arguments: &'a str,
    pub(crate) result: Cow<'a, str>,
    pub(crate) failed: bool,
}

impl Call<'_> {
    /// Reads the arguments as an object.
    pub(crate) fn object(&self) -> Map<String, Value> {
        serde_json::from_str(self.arguments).unwrap_or_default()
    }
}

/// Reads a conversation. Results without a call are left out; a call without a result gets a placeholder.
pub(crate) fn read(messages: &[Message], language: Language) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = messages;
    while let [message, after @ ..] = rest {
        rest = after;
        match message.role {
            Role::System => parts.push(Part::System(&message.content)),
            Role::User => parts.push(Part::User { text: &message.content, by_redial: message.by_redial }),
            Role::Tool => {}
            Role::Assistant => {
                let results = after.iter().take_while(|message| message.role == Role::Tool).count();
                let calls = calls(message, &after[..results], language);
                rest = &after[results..];
                if !calls.is_empty() || !message.content.trim().is_empty() {
                    parts.push(Part::Model { message, calls });
                }
            }
        }
    }
    parts
}

fn calls<'a>(message: &'a Message, results: &'a [Message], language: Language) -> Vec<Call<'a>> {
    let mut open: Vec<&Message> = results.iter().collect();
    let mut call = |call: &'a redial_proto::MessageCall| {
        let index = open.iter().position(|result| result.call_id.as_deref() == Some(call.id.as_str()));
        let result = index.map(|index| open.remove(index));
        Call {
            id: &call.id,
            tool: &call.tool,
            arguments: object_text(&call.arguments),
            result: result
                .map_or(Cow::Borrowed(placeholders::no_result(language)), |result| Cow::Borrowed(&result.content)),
            failed: result.is_none_or(|result| result.class.is_some()),
        }
    };
    message.calls.iter().map(&mut call).collect()
}

/// Returns the text if it is a JSON object, else `{}`: servers refuse every request with arguments that they cannot
/// parse.
fn object_text(text: &str) -> &str {
    // Parses all of it, as a server does, to find numbers out of range and lone surrogates as well.
    if serde_json::from_str::<Map<String, Value>>(text).is_ok() { text.trim() } else { "{}" }
}

#[cfg(test)]
pub(crate) mod tests {
    use redial_proto::{ErrorClass, MessageCall, TaskId, TurnRequest};

    use super::*;

    /// Makes a request without messages and tools.
    pub(crate) fn request(task: TaskId) -> TurnRequest {
        serde_json::from_value(serde_json::json!({"task": task, "turn": 1, "messages": []})).unwrap()
    }

    fn tool(call: &str, content: &str) -> Message {
        Message { call_id: Some(call.to_owned()), ..Message::text(Role::Tool, content) }
    }

    fn assistant(calls: &[(&str, &str)]) -> Message {
        let call = |(id, arguments): &(&str, &str)| MessageCall {
            id: (*id).to_owned(),
            tool: "t".to_owned(),
            arguments: (*arguments).to_owned(),
        };
        Message { calls: calls.iter().map(call).collect(), ..Message::text(Role::Assistant, "") }
    }

    #[test]
    fn every_call_has_one_result() {
        let failed = Message { class: Some(ErrorClass::Timeout), ..tool("b", "late") };
        let messages = [
            tool("z", "an orphan"),
            assistant(&[("a", "{}"), ("b", "{}"), ("c", "{}"), ("a", "{}")]),
            failed,
            tool("a", "first"),
            tool("a", "second"),
            tool("x", "not asked for"),
            Message::text(Role::Assistant, " "),
        ];
        let parts = read(&messages, Language::En);
        let [Part::Model { calls, .. }] = parts.as_slice() else { panic!("one part") };
        let results: Vec<_> = calls.iter().map(|call| (call.id, &*call.result, call.failed)).collect();
        let none = placeholders::no_result(Language::En);
        assert_eq!(results, [("a", "first", false), ("b", "late", true), ("c", none, true), ("a", "second", false)]);
    }
}
