//! The message of a response, whole or in pieces: one reader for both, so that they mean the same.

use serde_json::Value;

use super::{calls::Calls, parts};
use crate::{json::halves, piece::Piece, thoughts};

/// Fields with thoughts. Servers that send several send the same text in each, so only the first one counts.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// What was received of a message.
#[derive(Debug, Default)]
pub(super) struct Message {
    text: String,
    refusal: String,
    /// Thoughts by the field from which they came; the last ones are from parts of the content.
    thoughts: [String; THOUGHTS.len() + 1],
    details: Vec<Value>,
    calls: Calls,
    /// The call in the older field `function_call`, which some servers send beside `tool_calls`.
    older: Calls,
    size: usize,
}

impl Message {
    /// Reads a message that is not streamed.
    pub(super) fn whole(message: &Value) -> Self {
        let mut read = Self::default();
        read.add(message, true);
        read
    }

    /// Adds a piece.
    pub(super) fn piece(&mut self, delta: &Value) -> Piece {
        self.add(delta, false)
    }

    /// Adds what was not received yet of a message that is sent whole; returns what is new. A text of which the
    /// beginning was received is completed, and more calls than were received replace them.
    pub(super) fn complete(&mut self, message: &Value) -> Piece {
        let whole = Self::whole(message);
        let size = whole.size;
        let shown = whole.thought().unwrap_or_default();
        let thought = if self.thoughts.iter().all(String::is_empty) { shown } else { String::new() };
        let text = append(&mut self.text, &whole.text).to_owned();
        append(&mut self.refusal, &whole.refusal);
        if self.thoughts.iter().all(String::is_empty) {
            self.thoughts = whole.thoughts;
        }
        if self.details.is_empty() {
            self.details = whole.details;
        }
        if whole.calls.len().max(whole.older.len()) > self.calls.len().max(self.older.len()) {
            (self.calls, self.older) = (whole.calls, whole.older);
        }
        self.size = self.size.max(size);
        Piece { text: halves::join(text), thought }
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// Returns the text, perhaps with thoughts in it.
    pub(super) fn text(&self) -> String {
        halves::join(self.text.clone())
    }

    pub(super) fn refusal(&self) -> Option<String> {
        (!self.refusal.is_empty()).then(|| halves::join(self.refusal.clone()))
    }

    /// Returns the thoughts outside of the text.
    pub(super) fn thought(&self) -> Option<String> {
        let [fields @ .., parts] = &self.thoughts;
        let field = fields.iter().find(|thought| !thought.trim().is_empty());
        let both = [field.filter(|field| field.trim() != parts.trim()), Some(parts)];
        thoughts::join(both.into_iter().flatten().map(String::as_str), "\n\n").map(halves::join)
    }

    pub(super) fn calls(&self) -> &Calls {
        if self.calls.is_empty() { &self.older } else { &self.calls }
    }

    pub(super) fn details(&self) -> &[Value] {
        &self.details
    }

    fn add(&mut self, message: &Value, whole: bool) -> Piece {
        let content = parts::read(&message["content"]);
        let fields = THOUGHTS.map(|field| parts::thought(&message[field]));
        let shown = fields.iter().find(|thought| !thought.is_empty()).unwrap_or(&content.thought).clone();
        self.text.push_str(&content.text);
        self.refusal.push_str(&content.refusal);
        self.refusal.push_str(message["refusal"].as_str().unwrap_or_default());
        for (all, more) in self.thoughts.iter_mut().zip(fields.iter().chain([&content.thought])) {
            all.push_str(more);
        }
        self.size += content.text.len() + shown.len() + content.refusal.len();
        self.size += message["refusal"].as_str().map_or(0, str::len);
        match &message["reasoning_details"] {
            Value::Null => {}
            Value::Array(details) => self.details.extend(details.iter().cloned().map(halves::join_all)),
            other => self.details.push(halves::join_all(other.clone())),
        }
        if !message["reasoning_details"].is_null() {
            self.size += message["reasoning_details"].to_string().len();
        }
        let calls = match &message["tool_calls"] {
            Value::Array(calls) => calls.as_slice(),
            Value::Null => &[],
            one => std::slice::from_ref(one),
        };
        for call in calls.iter().chain(content.calls) {
            self.size += if whole { self.calls.whole(call) } else { self.calls.piece(call) };
        }
        if message["function_call"].is_object() {
            self.size += self.older.piece(&message["function_call"]);
        }
        Piece { text: halves::join(content.text), thought: halves::join(shown) }
    }
}

/// Appends what the whole text has after the part that was received; nothing if that part is not its beginning.
fn append<'a>(received: &mut String, whole: &'a str) -> &'a str {
    let more = whole.strip_prefix(received.as_str()).unwrap_or_default();
    received.push_str(more);
    more
}
