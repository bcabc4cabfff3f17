//! Errors of native tools.
//!
//! There is deliberately no conversion from other error types: only the tool knows whether an `io::Error` means "try
//! again" or "wrong configuration", and whether it had an effect before it failed.

use std::{fmt, time::Duration};

use redial_proto::{ErrorClass, Failure, FieldError, duration, limits};
use serde::Serialize;
use serde_json::Value;

/// An error with its class. The constructor decides what happens next.
///
/// ```
/// use redial_tools::ToolError;
///
/// fn check(seats: u32, free: u32) -> Result<(), ToolError> {
///     if seats == 0 {
///         return Err(ToolError::invalid("/seats", "minimum", seats, "1 or more"));
///     }
///     if seats > free {
///         return Err(ToolError::business_rule(format!("only {free} seats are free")));
///     }
///     Ok(())
/// }
///
/// assert_eq!(check(0, 4).unwrap_err().to_string(), "invalid_arguments: /seats: 0 was sent; allowed: 1 or more");
/// assert_eq!(check(5, 4).unwrap_err().to_string(), "business_rule: only 4 seats are free");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError(Failure);

impl ToolError {
    /// An argument that the schema allows but the tool refuses. Goes back to the sender and is not retried. `path` is a
    /// JSON pointer such as `/date`, `rule` a word such as `future`, `allowed` describes valid values.
    pub fn invalid(path: &str, rule: &str, sent: impl Serialize, allowed: &str) -> Self {
        Self(Failure::new(ErrorClass::InvalidArguments, String::new()).without_effect())
            .and_invalid(path, rule, sent, allowed)
    }

    /// Adds another wrong argument, so that all of them can be corrected at once.
    #[must_use]
    pub fn and_invalid(mut self, path: &str, rule: &str, sent: impl Serialize, allowed: &str) -> Self {
        let sent = Some(serde_json::to_value(sent).unwrap_or(Value::Null));
        self.add(FieldError {
            path: path.to_owned(),
            rule: rule.to_owned(),
            sent,
            allowed: allowed.to_owned(),
            hint: None,
        });
        self
    }

    /// An argument that was not sent, although the tool needs it here. Goes back to the sender and is not retried.
    pub fn missing(path: &str, allowed: &str) -> Self {
        Self(Failure::new(ErrorClass::InvalidArguments, String::new()).without_effect()).and_missing(path, allowed)
    }

    /// Adds another argument that was not sent.
    #[must_use]
    pub fn and_missing(mut self, path: &str, allowed: &str) -> Self {
        let (path, rule, allowed) = (path.to_owned(), "required".to_owned(), allowed.to_owned());
        self.add(FieldError { path, rule, sent: None, allowed, hint: None });
        self
    }

    fn add(&mut self, error: FieldError) {
        let line = error.without_hint();
        self.0.message = if self.0.message.is_empty() { line } else { format!("{}; {line}", self.0.message) };
        self.0.details.push(error);
    }

    /// Adds a likely correction of the last argument: `did you mean "上海"?`
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(last) = self.0.details.last_mut() {
            last.hint = Some(hint.into());
        }
        self
    }

    /// The tool refuses the call: sold out, wrong state. Not retried; the caller gets the message.
    pub fn business_rule(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::BusinessRule, message)
    }

    /// A service that the tool needs is unavailable. Retried with growing pauses. The attempt may have had an effect, so an
    /// `unsafe` tool is retried only after [`ToolError::without_effect`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::Unavailable, message)
    }

    /// A quota is used up; the attempt had no effect. Retried, not before [`ToolError::retry_after`] if that is set.
    pub fn rate_limited(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::RateLimited, message).without_effect()
    }

    /// Credentials were refused; the attempt had no effect. Not retried: an operator must correct them.
    pub fn auth(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::Auth, message).without_effect()
    }

    /// The tool's configuration is wrong; the attempt had no effect. Not retried: an operator must correct it.
    pub fn configuration(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::Configuration, message).without_effect()
    }

    /// The tool failed, and nothing better is known, such as after an error of a library. Not retried: it would most likely
    /// fail again. The attempt may have had an effect, so an `unsafe` tool's call ends `unknown`, except after
    /// [`ToolError::without_effect`]. Models read the message; put what they should not read into
    /// [`ToolError::diagnostics`].
    pub fn tool_failed(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::ToolFailed, message)
    }

    /// A bug in the tool. Not retried.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::Internal, message)
    }

    /// Sets the pause before the next attempt, in whole ms.
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.0.retry_after_ms = Some(duration::whole_ms(pause));
        self
    }

    /// States that the attempt certainly had no effect. Use it only if that is certain: an `unsafe` tool is then retried.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.0.effect_possible = false;
        self
    }

    /// Adds what only operators may read, such as the text of a library's error: the record of the attempt keeps it, and
    /// the error that callers and models get is without it.
    #[must_use]
    pub fn diagnostics(mut self, text: impl Into<String>) -> Self {
        self.0 = self.0.with_diagnostics(text);
        self
    }

    /// The class, which decides the route of the error.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    fn of(class: ErrorClass, message: impl Into<String>) -> Self {
        Self(Failure::new(class, message))
    }
}

/// Checks rules that a schema cannot express, before the tool has any effect. It collects all broken rules, so that a model
/// can correct them together.
///
/// ```
/// # use redial_tools::{Rules, ToolError};
/// fn check(from: &str, to: &str, seats: u32) -> Result<(), ToolError> {
///     let mut rules = Rules::default();
///     if from == to {
///         rules.broken("/to", "other_place", to, "another place than /from");
///     }
///     if !(1..=5).contains(&seats) {
///         rules.broken("/seats", "range", seats, "1 to 5");
///     }
///     rules.into_result()
/// }
/// assert!(check("A", "A", 6).unwrap_err().to_string().contains("1 to 5"));
/// ```
#[derive(Debug, Default)]
pub struct Rules(Option<ToolError>);

impl Rules {
    /// Adds a broken rule; the parameters are those of [`ToolError::invalid`].
    pub fn broken(&mut self, path: &str, rule: &str, sent: impl Serialize, allowed: &str) {
        self.0 = Some(match self.0.take() {
            Some(error) => error.and_invalid(path, rule, sent, allowed),
            None => ToolError::invalid(path, rule, sent, allowed),
        });
    }

    /// An error with every broken rule, if there is one.
    pub fn into_result(self) -> Result<(), ToolError> {
        self.0.map_or(Ok(()), Err)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.class, self.0.message)
    }
}

impl std::error::Error for ToolError {}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        let message = limits::shorten(&error.0.message, limits::MAX_ERROR_MESSAGE);
        let diagnostics = error.0.diagnostics.map(|text| limits::shorten(&text, limits::MAX_ERROR_MESSAGE));
        Self { message, diagnostics, ..error.0 }
    }
}
