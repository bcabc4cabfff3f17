//! Reads the text of a model that calls functions: thoughts, calls that its server left there, and the answer.

use redial_proto::ReplyCall;

use crate::{offers::Offers, thoughts, written};

/// What a text says, together with what came beside it.
pub(crate) struct Read {
    /// The text for the user, if there is any.
    pub(crate) text: Option<String>,
    pub(crate) thought: Option<String>,
    pub(crate) calls: Vec<ReplyCall>,
}

/// Reads a text. `thought` and `calls` came in fields of their own; calls in the text count only if there are none.
pub(crate) fn read(text: &str, thought: Option<String>, calls: Vec<ReplyCall>, offers: &Offers) -> Read {
    let split = thoughts::split(text);
    let thought = thoughts::join([thought, split.thought].iter().flatten().map(String::as_str), "\n\n");
    let written = if calls.is_empty() { written::read(&split.rest, offers) } else { None };
    let (text, calls) = match written {
        Some(written) => (written.rest, written.calls),
        None => (split.rest, calls),
    };
    Read { text: Some(text).filter(|text| !text.trim().is_empty()), thought, calls }
}
