//! What Redial says to a model, in its language.
//!
//! A failed call becomes a small JSON object that says what was wrong, where, what would be right, and what to do now.
//! The texts are in [`mod@texts`], one table for all of them; users replace them by key. What a tool or a service wrote
//! goes through [`redial_redaction::scrub`] first.

mod advice;
mod compose;
mod content;
mod failure;
mod fill;
pub mod texts;

use std::collections::BTreeMap;

use redial_proto::{Language, TaskCode};

pub use self::compose::{call_failure, failed_call, message, nudge, repeated};
pub use self::content::MAX_FEEDBACK;
pub use self::failure::CallFailure;
pub use self::fill::check_templates;

/// The language, and the user's own words instead of ours.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    pub language: Language,
    /// [`redial_proto::AgentSpec::templates`].
    pub templates: &'a BTreeMap<String, String>,
}

/// Why a call is refused as a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated<'a> {
    /// The very same call failed before, with this error.
    SameCall {
        /// The earlier error in words.
        error: &'a str,
    },
    /// Calls of this tool failed this often in a row with the same error, whatever the arguments.
    SameError {
        /// The earlier error in words.
        error: &'a str,
        times: u32,
    },
    /// The very same call gave the very same result this often.
    SameResult { times: u32 },
    /// Two calls take turns and nothing changes.
    PingPong {
        /// The other tool.
        other: &'a str,
    },
}

/// Something else that is said to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nudge<'a> {
    /// The answer had no usable form.
    Problem(&'a str),
    Empty,
    /// The answer was cut off at the limit of tokens: a shorter one.
    CutOff,
    /// The reply was cut off at the limit of tokens, and all of it was thoughts.
    CutOffBeforeAnswer,
    /// The answer was cut off at the limit of tokens: the rest of it.
    Continue {
        /// Its last words.
        ending: &'a str,
    },
    /// A limit is reached: answer now, without tools.
    LastAnswer {
        code: TaskCode,
        tool: Option<&'a str>,
    },
}
