//! Why a native tool failed.
//!
//! There is no blanket conversion from other error types on purpose: whether an `io::Error` means "try again" or "set
//! up wrongly", and whether something was changed by then, only the tool knows.

use std::{fmt, time::Duration};

use redial_proto::{ErrorClass, Failure, FieldError, duration, limits};
use serde::Serialize;
use serde_json::Value;

/// An error with its class. Choose the constructor by what should happen next.
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
    /// An argument that the schema lets through but the tool does not: goes back to whoever sent it, is not retried.
    /// `path` is a JSON pointer such as `/date`, `rule` a word such as `future`, `allowed` says what would be right.
    pub fn invalid(path: &str, rule: &str, sent: impl Serialize, allowed: &str) -> Self {
        Self(Failure::new(ErrorClass::InvalidArguments, String::new()).without_effect())
            .and_invalid(path, rule, sent, allowed)
    }

    /// One more wrong argument, so that all of them can be corrected at once.
    #[must_use]
    pub fn and_invalid(mut self, path: &str, rule: &str, sent: impl Serialize, allowed: &str) -> Self {
        let sent = serde_json::to_value(sent).unwrap_or(Value::Null);
        let line = format!("{path}: {sent} was sent; allowed: {allowed}");
        self.0.message = if self.0.message.is_empty() { line } else { format!("{}; {line}", self.0.message) };
        self.0.details.push(FieldError {
            path: path.to_owned(),
            rule: rule.to_owned(),
            sent,
            allowed: allowed.to_owned(),
            hint: None,
        });
        self
    }

    /// A likely correction of the argument that was named last: `did you mean "上海"?`
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(last) = self.0.details.last_mut() {
            last.hint = Some(hint.into());
        }
        self
    }

    /// The tool says no: sold out, wrong state. Not retried; whoever called gets to know why.
    pub fn business_rule(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::BusinessRule, message)
    }

    /// Something that the tool needs does not answer now. Retried with growing pauses. It counts as "may have worked",
    /// so an `unsafe` tool is retried only after [`ToolError::without_effect`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::Unavailable, message)
    }

    /// A quota is used up; nothing was done. Retried, with [`ToolError::retry_after`] not before that.
    pub fn rate_limited(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::RateLimited, message).without_effect()
    }

    /// Credentials were refused; nothing was done. Not retried: an operator has to look.
    pub fn auth(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::Auth, message).without_effect()
    }

    /// The tool is set up wrongly; nothing was done. Not retried: an operator has to look.
    pub fn configuration(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::Configuration, message).without_effect()
    }

    /// A bug of the tool. Not retried.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::Internal, message)
    }

    /// Do not try again before this pause is over.
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.0.retry_after_ms = Some(duration::whole_ms(pause));
        self
    }

    /// States that the tool certainly did not do its work. Only say so if it is certain: an `unsafe` tool is then
    /// run again.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.0.effect_possible = false;
        self
    }

    /// The class that was chosen.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    fn of(class: ErrorClass, message: impl Into<String>) -> Self {
        Self(Failure::new(class, message))
    }
}

/// Rules of a tool that a schema cannot say. All are looked at before anything is done, so that a model hears of every
/// broken one at once and can correct them in one go.
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
///     rules.hold()
/// }
/// assert!(check("A", "A", 6).unwrap_err().to_string().contains("1 to 5"));
/// ```
#[derive(Debug, Default)]
pub struct Rules(Option<ToolError>);

impl Rules {
    /// Notes a broken rule, in the words of [`ToolError::invalid`].
    pub fn broken(&mut self, path: &str, rule: &str, sent: impl Serialize, allowed: &str) {
        self.0 = Some(match self.0.take() {
            Some(error) => error.and_invalid(path, rule, sent, allowed),
            None => ToolError::invalid(path, rule, sent, allowed),
        });
    }

    /// An error that names every broken rule, if there is one.
    pub fn hold(self) -> Result<(), ToolError> {
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
        Self { message, ..error.0 }
    }
}
