//! Why arguments were refused.

use redial_proto::{Advice, ErrorClass, Failure, FieldError, Help, Language, limits};
use serde_json::Value;

use crate::{
    excerpt::excerpt,
    language::{line, pick},
};

/// Longest quotation of a value in an error, in bytes.
const MAX_SENT: usize = 300;

/// Why a call must not reach a tool: class `malformed_arguments`, `invalid_arguments` or `unknown_tool`.
///
/// It holds all that is shown to a model, so that every caller shows the same.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// [`ErrorClass::MalformedArguments`] if the text is not a usable JSON object, [`ErrorClass::InvalidArguments`] if the
    /// object breaks the schema, [`ErrorClass::UnknownTool`] if no tool has that name.
    pub class: ErrorClass,
    /// The whole refusal in one line; at most [`limits::MAX_ERROR_MESSAGE`] bytes.
    pub message: String,
    /// Every field error, at most [`limits::MAX_DETAILS`], the message says how many more there were; only for invalid
    /// arguments.
    pub details: Vec<FieldError>,
    /// What helps to correct it.
    pub help: Box<Help>,
}

impl Refusal {
    pub(crate) fn malformed(why: impl Into<String>, advice: Advice) -> Self {
        Self::new(ErrorClass::MalformedArguments, &why.into(), advice)
    }

    /// `more`: the number of field errors that are not in `details`.
    pub(crate) fn invalid(details: Vec<FieldError>, more: usize, language: Language) -> Self {
        let mut lines: Vec<String> = details.iter().map(|error| line(error, language)).collect();
        if more > 0 {
            lines.push(pick(language, format!("and {more} more"), format!("以及另外 {more} 处")));
        }
        let message = lines.join(pick(language, "; ", "；").as_str());
        Self { details, ..Self::new(ErrorClass::InvalidArguments, &message, Advice::Values) }
    }

    pub(crate) fn unknown_tool(message: &str) -> Self {
        Self::new(ErrorClass::UnknownTool, message, Advice::ToolName)
    }

    /// Quotes the text, with a mark at the place where it breaks, if there is one (in bytes).
    pub(crate) fn quoting(mut self, text: &str, at: Option<usize>, language: Language) -> Self {
        self.help.sent = Some(excerpt(text, at, language));
        self
    }

    fn new(class: ErrorClass, message: &str, advice: Advice) -> Self {
        let message = limits::shorten(message, limits::MAX_ERROR_MESSAGE);
        Self { class, message, details: Vec::new(), help: Box::new(Help { advice, ..Help::default() }) }
    }
}

impl From<Refusal> for Failure {
    /// The tool never ran, so it had no effect.
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.class, refusal.message).without_effect().with_details(refusal.details)
    }
}

/// The value as an error quotes it: whole if it is small, else the start of its JSON text.
pub(crate) fn quoted(value: &Value) -> Value {
    if let Value::String(text) = value {
        return Value::String(limits::shorten(text, MAX_SENT));
    }
    let text = value.to_string();
    if text.len() <= MAX_SENT { value.clone() } else { Value::String(limits::shorten(&text, MAX_SENT)) }
}
