//! How an attempt ended, and why.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, value::RawValue};
use strum::{VariantArray, VariantNames};

use crate::{limits, names::named};

/// Why an attempt or a call failed. Closed: each class has one route (`redial_engine::route`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ErrorClass {
    /// The arguments are not a JSON object.
    MalformedArguments,
    /// No tool of this name is known.
    UnknownTool,
    /// The arguments break the schema or the tool's own rules; HTTP 400 and 422.
    InvalidArguments,
    /// The same call failed before in this conversation.
    RepeatedCall,
    /// The tool refuses: sold out, wrong state; HTTP 404, 409, 412.
    BusinessRule,
    /// HTTP 429, a quota.
    RateLimited,
    /// HTTP 5xx, 408, 425, a connection that failed.
    Unavailable,
    /// The attempt's deadline passed.
    Timeout,
    /// A function of the client: its client did not answer in time.
    Unanswered,
    /// The worker disappeared; its lease expired.
    Lost,
    /// HTTP 401 and 403.
    Auth,
    /// The tool is set up wrongly: a missing variable, HTTP 501.
    Configuration,
    /// The result is not JSON, or breaks the output schema.
    OutputInvalid,
    /// The result is over the size limit.
    OutputTooLarge,
    /// A person refused it.
    Rejected,
    /// A limit of the task or of the call's total deadline is reached.
    BudgetExhausted,
    /// The user cancelled.
    Cancelled,
    /// The tool failed and did not say why: a program that ended with exit code 1, an exception.
    ToolFailed,
    /// A bug of Redial or a panic of a tool.
    Internal,
}

named!(ErrorClass, "an error class");

/// One rule that arguments break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) into the arguments; empty for the whole.
    pub path: String,
    /// The broken rule, by its JSON Schema keyword where it has one: `type`, `required`, `format`.
    pub rule: String,
    /// What was sent there; absent if nothing was. `null` means that `null` was sent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub sent: Option<Value>,
    /// What the rule allows, as text.
    pub allowed: String,
    /// A likely correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.without_hint())?;
        self.hint.iter().try_for_each(|hint| write!(f, " ({hint})"))
    }
}

/// Why something failed: an attempt as its worker reports it, an ended call as the audit keeps it, a call that was
/// refused without running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Decides what happens next.
    pub class: ErrorClass,
    /// The reason in words, for callers and, in some classes, for models; [`Failure::within_limits`] keeps it to
    /// [`limits::MAX_ERROR_MESSAGE`] bytes.
    pub message: String,
    /// What only operators may read, such as the end of a program's standard error. The record of the attempt keeps it
    /// after the message; the error of the call, which callers and models get, is without it. As long as a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<String>,
    /// Broken rules of the arguments, for `invalid_arguments`; at most [`limits::MAX_DETAILS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<FieldError>,
    /// Do not try again before this many ms have passed (`Retry-After`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// In a report: false only if it is certain that the tool did not do its work, e.g. the connection was never made.
    /// An `unsafe` tool is retried only then. In the record of an ended call it is set only if the call ended `unknown`.
    #[serde(default = "crate::fields::yes")]
    pub effect_possible: bool,
}

impl Failure {
    /// A failure whose effect on the world is uncertain.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            diagnostics: None,
            details: Vec::new(),
            retry_after_ms: None,
            effect_possible: true,
        }
    }

    /// States that the tool certainly did not do its work.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.effect_possible = false;
        self
    }

    /// Asks for a pause before the next attempt, in ms.
    #[must_use]
    pub fn retry_after_ms(mut self, pause: u64) -> Self {
        self.retry_after_ms = Some(pause);
        self
    }

    /// Adds broken rules.
    #[must_use]
    pub fn with_details(mut self, details: Vec<FieldError>) -> Self {
        self.details = details;
        self
    }

    /// Adds what only operators may read. An empty text adds nothing.
    #[must_use]
    pub fn with_diagnostics(mut self, text: impl Into<String>) -> Self {
        self.diagnostics = Some(text.into()).filter(|text| !text.is_empty());
        self
    }

    /// The message as the record of the attempt keeps it: followed by what only operators may read.
    pub fn for_the_record(&self) -> String {
        match &self.diagnostics {
            Some(diagnostics) => {
                limits::shorten(&format!("{}: {diagnostics}", self.message), limits::MAX_ERROR_MESSAGE)
            }
            None => self.message.clone(),
        }
    }

    /// The same failure, small enough to be stored and shown: texts are cut, surplus details are dropped.
    #[must_use]
    pub fn within_limits(mut self) -> Self {
        self.message = limits::shorten(&self.message, limits::MAX_ERROR_MESSAGE);
        self.diagnostics = self.diagnostics.map(|text| limits::shorten(&text, limits::MAX_ERROR_MESSAGE));
        self.details.truncate(limits::MAX_DETAILS);
        self
    }
}

impl FieldError {
    /// In English words, without the hint.
    pub fn without_hint(&self) -> String {
        let path = if self.path.is_empty() { "the arguments" } else { &self.path };
        let allowed = &self.allowed;
        match self.was_sent() {
            Some(sent) => format!("{path}: {sent} was sent; allowed: {allowed}"),
            None if self.rule == "required" => format!("{path} is missing; allowed: {allowed}"),
            None => format!("{path}: nothing was sent; allowed: {allowed}"),
        }
    }

    /// What was sent there, if anything was. A tool may say `null` of a missing property.
    pub fn was_sent(&self) -> Option<&Value> {
        self.sent.as_ref().filter(|sent| !(sent.is_null() && self.rule == "required"))
    }
}

/// A field that is there, `null` included.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The tool's own result, as it was written.
    Success(Box<RawValue>),
    /// An error of some class.
    Failure(Failure),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_within_limits_keeps_what_fits() {
        let rule = FieldError {
            path: "/a".to_owned(),
            rule: "type".to_owned(),
            sent: None,
            allowed: "a number".to_owned(),
            hint: None,
        };
        let small = Failure::new(ErrorClass::InvalidArguments, "short").with_details(vec![rule.clone()]);
        assert_eq!(small.clone().within_limits(), small);
        let message = "好".repeat(limits::MAX_ERROR_MESSAGE);
        let cut = Failure::new(ErrorClass::InvalidArguments, message).with_details(vec![rule; 101]).within_limits();
        assert!(cut.message.len() <= limits::MAX_ERROR_MESSAGE && cut.message.ends_with("(cut)"));
        assert_eq!(cut.details.len(), 100);
        let long = Failure::new(ErrorClass::ToolFailed, "no").with_diagnostics("x".repeat(10_000)).within_limits();
        assert_eq!(long.diagnostics.as_ref().unwrap().len(), limits::MAX_ERROR_MESSAGE);
        assert!(long.for_the_record().len() <= limits::MAX_ERROR_MESSAGE);
    }

    #[test]
    fn what_was_not_sent_is_absent_and_null_is_null() {
        let read = |json: &str| serde_json::from_str::<FieldError>(json).unwrap();
        let absent = r#"{"path":"/a","rule":"type","allowed":"a number"}"#;
        let null = r#"{"path":"/a","rule":"type","sent":null,"allowed":"a number"}"#;
        for (json, sent, words) in [
            (absent, None, "/a: nothing was sent; allowed: a number"),
            (null, Some(Value::Null), "/a: null was sent; allowed: a number"),
        ] {
            let error = read(json);
            assert_eq!(error.sent, sent);
            assert_eq!(serde_json::to_string(&error).unwrap(), json);
            assert_eq!(error.to_string(), words);
        }
        let missing = read(&null.replace("type", "required"));
        assert_eq!((missing.was_sent(), missing.to_string().as_str()), (None, "/a is missing; allowed: a number"));
    }

    #[test]
    fn the_record_keeps_what_only_operators_may_read() {
        let failure = Failure::new(ErrorClass::ToolFailed, "the tool failed").with_diagnostics("db-7 is down");
        assert_eq!(
            (failure.message.as_str(), failure.for_the_record().as_str()),
            ("the tool failed", "the tool failed: db-7 is down")
        );
        let without = Failure::new(ErrorClass::ToolFailed, "the tool failed").with_diagnostics("");
        assert_eq!((without.diagnostics.as_ref(), without.for_the_record().as_str()), (None, "the tool failed"));
    }
}
