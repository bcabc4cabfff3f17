//! Why arguments were refused.

use redial_proto::{Advice, ErrorClass, Failure, FieldError, Help, Language, limits};
use serde_json::Value;

use crate::{
    cost::{MAX_DESCRIBED, MAX_STEPS},
    excerpt::excerpt,
    language::{line, pick},
};

/// Longest quotation of a value in an error, in bytes.
const MAX_SENT: usize = 300;

/// Why a call must not reach a tool: class `malformed_arguments`, `invalid_arguments`, `unknown_tool` or `configuration`.
///
/// It holds all that is shown to a model, so that every caller shows the same.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// [`ErrorClass::MalformedArguments`] if the text is not a usable JSON object, [`ErrorClass::InvalidArguments`] if the
    /// object breaks the schema, [`ErrorClass::UnknownTool`] if no tool has that name, [`ErrorClass::Configuration`] if the schema is too
    /// costly to check these arguments.
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

    /// Refuses invalid arguments. `more`: the number of field errors that are not in `details`.
    pub(crate) fn invalid(details: Vec<FieldError>, more: usize, language: Language) -> Self {
        let mut lines: Vec<String> = details.iter().map(|error| line(error, language)).collect();
        if more > 0 {
            lines.push(pick(language, format!("and {more} more"), format!("以及另外 {more} 处")));
        }
        let message = lines.join(pick(language, "; ", "；").as_str());
        Self { details, ..Self::new(ErrorClass::InvalidArguments, &message, Advice::Values) }
    }

    /// Refuses because the schema is at fault, so nothing else can be sent instead.
    pub(crate) fn costly(language: Language) -> Self {
        let message = pick(
            language,
            format!(
                "checking these arguments against the tool's schema would take more than {MAX_STEPS} steps, which is the most \
                 allowed; an operator must simplify the schema, or the arguments must be shorter"
            ),
            format!(
                "按工具的 schema 检查这些参数需要超过 {MAX_STEPS} 步（上限）；需要由管理员简化 schema，或者发送更短的参数"
            ),
        );
        Self::new(ErrorClass::Configuration, &message, Advice::Values)
    }

    /// Refuses because some rule is broken; which one would take too many steps to find out.
    pub(crate) fn undescribed(arguments: &Value, language: Language) -> Self {
        let allowed = pick(
            language,
            format!(
                "arguments that fit the tool's schema; which rule is broken was not looked for, because that takes more than \
                 {MAX_DESCRIBED} steps"
            ),
            format!("符合工具 schema 的参数（找出违反了哪条规则需要超过 {MAX_DESCRIBED} 步，因此没有查找）"),
        );
        let hint = pick(language, "send fewer nested values", "请减少嵌套的值");
        let sent = Some(Value::String(limits::shorten(&quoted(arguments).to_string(), 60)));
        let error = FieldError { path: String::new(), rule: "schema".to_owned(), sent, allowed, hint: Some(hint) };
        Self::invalid(vec![error], 0, language)
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
    /// Converts it; the tool never ran, so it had no effect.
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.class, refusal.message).without_effect().with_details(refusal.details)
    }
}

/// Returns the value as an error quotes it: whole if it is small, else the start of its JSON text.
pub(crate) fn quoted(value: &Value) -> Value {
    if let Value::String(text) = value {
        return Value::String(limits::shorten(text, MAX_SENT));
    }
    let text = value.to_string();
    if text.len() <= MAX_SENT { value.clone() } else { Value::String(limits::shorten(&text, MAX_SENT)) }
}
