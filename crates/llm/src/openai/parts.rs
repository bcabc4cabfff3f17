//! The content of a message: a text, or a list of parts of which some are text and some are thoughts.

use serde_json::Value;

/// Kinds of parts with thoughts.
const THOUGHTS: [&str; 6] =
    ["thinking", "reasoning", "reasoning_content", "reasoning_text", "thought", "reasoning.text"];
/// Kinds of parts that are calls.
const CALLS: [&str; 4] = ["tool_use", "tool_call", "function_call", "function"];
/// Fields with the text of a part; the first that is there counts.
const TEXTS: [&str; 8] =
    ["text", "thinking", "reasoning", "reasoning_content", "content", "summary", "refusal", "value"];

/// What a content consists of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    pub(super) text: String,
    pub(super) thought: String,
    pub(super) refusal: String,
    pub(super) calls: Vec<&'a Value>,
}

/// What a part without a kind of its own is.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Thought,
    Refusal,
}

/// Reads a content, or a piece of one.
pub(super) fn read(content: &Value) -> Parts<'_> {
    let mut parts = Parts::default();
    parts.add(content, Kind::Text);
    parts
}

/// Reads a field with thoughts.
pub(super) fn thought(field: &Value) -> String {
    let mut parts = Parts::default();
    parts.add(field, Kind::Thought);
    parts.thought
}

impl<'a> Parts<'a> {
    fn add(&mut self, value: &'a Value, kind: Kind) {
        match value {
            Value::String(text) => match kind {
                Kind::Text => self.text.push_str(text),
                Kind::Thought => self.thought.push_str(text),
                Kind::Refusal => self.refusal.push_str(text),
            },
            Value::Array(parts) => parts.iter().for_each(|part| self.add(part, kind)),
            Value::Object(part) => {
                let own = part.get("type").and_then(Value::as_str).unwrap_or_default();
                if CALLS.contains(&own) && !matches!(kind, Kind::Thought) {
                    return self.calls.push(value);
                }
                let kind = match own {
                    _ if THOUGHTS.contains(&own) || part.get("thought") == Some(&Value::Bool(true)) => Kind::Thought,
                    "refusal" => Kind::Refusal,
                    _ => kind,
                };
                if let Some(text) = TEXTS.iter().filter_map(|field| part.get(*field)).find(|text| !text.is_null()) {
                    self.add(text, kind);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
