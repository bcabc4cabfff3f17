//! What providers refuse, as strict checks of the body of a request: they panic at the first fault. Written from the
//! providers' rules and from nothing that makes such bodies, so that each can show an error of the other.

pub(crate) mod anthropic;
pub(crate) mod openai;

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns the text of a value, which must have something in it.
fn text(value: &Value) -> &str {
    let text = value.as_str().unwrap_or_else(|| panic!("a text is needed, not {value}"));
    assert!(!text.trim().is_empty(), "an empty text");
    text
}

/// Returns the token, which must have letters, digits, `_` and `-`, at most so many.
fn token(value: &Value, most: usize) -> &str {
    let text = value.as_str().unwrap_or_default();
    let fits = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    assert!(fits && (1..=most).contains(&text.len()), "{value} is not 1 to {most} of a-z, A-Z, 0-9, _ and -");
    text
}

/// Panics at keys other than these.
fn only(object: &Value, allowed: &[&str]) {
    let object = object.as_object().unwrap_or_else(|| panic!("{object} is no object"));
    let other = object.keys().find(|key| !allowed.contains(&key.as_str()));
    assert_eq!(other, None, "it is not allowed here");
}

/// Returns the messages, of which there must be one at least.
fn messages(body: &Value) -> &[Value] {
    let messages = body["messages"].as_array().unwrap();
    assert!(!messages.is_empty(), "no message");
    messages
}

/// Checks the list of tools, if there is one: not empty, names unique. `describe` takes a tool apart into its name and
/// schema.
fn tools(body: &Value, describe: fn(&Value) -> (&Value, &Value)) {
    let Some(tools) = body.get("tools") else {
        return assert!(body.get("tool_choice").is_none() && body.get("parallel_tool_calls").is_none(), "no tools");
    };
    let tools = tools.as_array().unwrap();
    assert!(!tools.is_empty(), "a list of no tools");
    let mut names = BTreeSet::new();
    for (name, schema) in tools.iter().map(describe) {
        assert!(names.insert(token(name, 64)), "{name} is there twice");
        assert_eq!(schema["type"], "object", "the schema of {name}");
    }
}

/// Checks the roles of a conversation without tools' own role: user and assistant by turns, user first and last.
fn alternates(messages: &[Value]) {
    for (n, message) in messages.iter().enumerate() {
        assert_eq!(message["role"], if n % 2 == 0 { "user" } else { "assistant" }, "the role of message {n}");
    }
    assert!(messages.len() % 2 == 1, "the last message is not the user's");
}

/// The calls of the last assistant message that wait for their results, in order.
#[derive(Default)]
struct Open<'a> {
    ids: BTreeSet<&'a str>,
    open: std::collections::VecDeque<&'a str>,
}

impl<'a> Open<'a> {
    fn call(&mut self, id: &'a str) {
        assert!(self.ids.insert(id), "id {id:?} is there twice");
        self.open.push_back(id);
    }

    fn result(&mut self, id: &Value) {
        assert_eq!(self.open.pop_front(), id.as_str(), "the answer of another call, or of none");
    }

    fn all_answered(&self) {
        assert!(self.open.is_empty(), "{:?} are not answered", self.open);
    }
}
