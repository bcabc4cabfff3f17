//! Why arguments were not accepted.

use redial_proto::{ErrorClass, Failure, Violation, limits};
use serde_json::Value;

/// Broken rules that a refusal lists; the message says how many more there were.
pub(crate) const MAX_DETAILS: usize = 100;
/// Bytes of a value that is quoted in an error.
const MAX_SENT: usize = 300;

/// Arguments that must not reach the tool: class `malformed_arguments` or `invalid_arguments`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// [`ErrorClass::MalformedArguments`] if the text is no usable JSON object, else [`ErrorClass::InvalidArguments`].
    pub class: ErrorClass,
    /// All of it in one line, for people; at most [`limits::MAX_ERROR_MESSAGE`] bytes.
    pub message: String,
    /// Every broken rule, at most 100; empty for malformed arguments.
    pub details: Vec<Violation>,
}

impl Refusal {
    pub(crate) fn malformed(why: impl Into<String>) -> Self {
        let message = limits::shorten(&why.into(), limits::MAX_ERROR_MESSAGE);
        Self { class: ErrorClass::MalformedArguments, message, details: Vec::new() }
    }

    pub(crate) fn invalid(mut details: Vec<Violation>) -> Self {
        let mut lines: Vec<String> = details.iter().take(MAX_DETAILS).map(in_words).collect();
        if details.len() > MAX_DETAILS {
            lines.push(format!("and {} more", details.len() - MAX_DETAILS));
            details.truncate(MAX_DETAILS);
        }
        let message = limits::shorten(&lines.join("; "), limits::MAX_ERROR_MESSAGE);
        Self { class: ErrorClass::InvalidArguments, message, details }
    }
}

impl From<Refusal> for Failure {
    /// The tool never ran, so it had no effect.
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.class, refusal.message).without_effect().with_details(refusal.details)
    }
}

fn in_words(violation: &Violation) -> String {
    let place = if violation.path.is_empty() { "the arguments" } else { &violation.path };
    let hint = violation.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    if violation.rule == "required" {
        return format!("{place} is missing; allowed: {}{hint}", violation.allowed);
    }
    format!("{place}: {} was sent; allowed: {}{hint}", violation.sent, violation.allowed)
}

/// What was sent, as an error quotes it: whole if it is small, else the start of its JSON text.
pub(crate) fn quoted(value: &Value) -> Value {
    if let Value::String(text) = value {
        return Value::String(limits::shorten(text, MAX_SENT));
    }
    let text = value.to_string();
    if text.len() <= MAX_SENT { value.clone() } else { Value::String(limits::shorten(&text, MAX_SENT)) }
}
