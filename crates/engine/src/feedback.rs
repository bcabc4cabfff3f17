//! What Redial says to a model, in its language.

use std::collections::BTreeMap;

use redial_proto::{Language, TaskCode};

use crate::task::CallFailure;

/// The language, and the user's own words instead of ours.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// The language.
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
        /// How often.
        times: u32,
    },
    /// The very same call gave the very same result this often.
    SameResult {
        /// How often.
        times: u32,
    },
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
    /// The answer was empty.
    Empty,
    /// A limit is reached: answer now, without tools.
    LastAnswer {
        /// Which limit.
        code: TaskCode,
        /// The tool whose corrections are used up.
        tool: Option<&'a str>,
    },
}

/// The failure of a call that is refused as a repetition.
pub fn repeated(words: Words<'_>, tool: &str, why: Repeated<'_>) -> CallFailure {
    let _ = words;
    CallFailure {
        class: redial_proto::ErrorClass::RepeatedCall,
        message: format!("{tool}: {why:?}"),
        details: Vec::new(),
        unknown: false,
    }
}

/// The content of the tool message of a call that has no result.
pub fn failed_call(words: Words<'_>, tool: &str, failure: &CallFailure, corrections_left: Option<u32>) -> String {
    let _ = words;
    serde_json::json!({"status": "error", "tool": tool, "class": failure.class, "message": failure.message,
        "details": failure.details, "corrections_left": corrections_left})
    .to_string()
}

/// The content of a user message by Redial.
pub fn nudge(words: Words<'_>, nudge: Nudge<'_>) -> String {
    let _ = words;
    format!("{nudge:?}")
}
