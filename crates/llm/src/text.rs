//! Reads the text of a model that calls functions: thoughts, calls that its server left there, and the answer.

use redial_proto::{Language, ReplyCall};

use crate::{invented, offers::Offers, thoughts, written};

/// What a text says, together with what came beside it.
pub(crate) struct Read {
    /// The text for the user, if there is any.
    pub(crate) text: Option<String>,
    pub(crate) thought: Option<String>,
    pub(crate) calls: Vec<ReplyCall>,
    /// What is wrong with the form, for the model.
    pub(crate) problem: Option<String>,
}

/// Reads a text. `thought` and `calls` came in fields of their own; calls in the text count only if there are none. From
/// the first result that the model wrote itself, the text is no answer and has no calls; beside calls it is a thought.
pub(crate) fn read(
    text: &str,
    thought: Option<String>,
    calls: Vec<ReplyCall>,
    offers: &Offers,
    language: Language,
) -> Read {
    let split = thoughts::split(text);
    let result = if offers.is_empty() { None } else { invented::begin(&split.rest) };
    let (said, invented) = split.rest.split_at(result.unwrap_or(split.rest.len()));
    let written = if calls.is_empty() { written::read(said, offers) } else { None };
    let (text, calls) = match written {
        Some(written) => (written.rest, written.calls),
        None if calls.is_empty() => (split.rest.clone(), calls),
        None => (said.to_owned(), calls),
    };
    let unused = Some(invented.trim().to_owned()).filter(|_| !calls.is_empty());
    let thoughts = [thought, split.thought, unused];
    Read {
        text: Some(text).filter(|text| !text.trim().is_empty()),
        thought: thoughts::join(thoughts.iter().flatten().map(String::as_str), "\n\n"),
        problem: result.filter(|_| calls.is_empty()).map(|_| invented::problem(language).to_owned()),
        calls,
    }
}
