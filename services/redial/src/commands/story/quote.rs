//! Texts and JSON from outside, made fit to be read in a story.

use redial_proto::{FieldError, limits};

use crate::{commands::show::pretty, output};

/// A text is quoted so far, in bytes; `--json` prints all of it.
const LONGEST: usize = 2000;
/// A value that broke a rule, and the first line of a passing error, are shown so far, in bytes.
const SENT: usize = 200;

/// A text of any form, cut if it is huge, without an empty line at either end.
pub(crate) fn quoted(text: &str) -> String {
    let text = output::plain(text.trim());
    if text.len() <= LONGEST {
        return text;
    }
    format!("{}\n{} bytes in all; --json prints them", limits::shorten(&text, LONGEST), text.len())
}

/// The first line of an error that passes by itself; the call's own page (`redial show CALL`) has all of it.
pub(crate) fn summary(error: &str) -> String {
    let first = error.trim().lines().next().unwrap_or_default();
    output::plain(&limits::shorten(first, SENT))
}

/// JSON on one line; text that is no JSON as it is.
pub(crate) fn json(text: &str) -> String {
    match serde_json::from_str::<&serde_json::value::RawValue>(text) {
        Ok(raw) => quoted(&pretty::one_line(raw.get())),
        Err(_) => quoted(text),
    }
}

/// One line on a broken rule.
pub(crate) fn violation(violation: &FieldError) -> String {
    let FieldError { path, rule, sent, allowed, hint } = violation;
    let place = if path.is_empty() { "the whole" } else { path };
    let sent = limits::shorten(&pretty::one_line(&sent.to_string()), SENT);
    let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    output::plain(&format!("{place}: {rule}; sent {sent}; allowed: {allowed}{hint}"))
}
