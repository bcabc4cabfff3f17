//! What a tool or a service wrote, without what must not be told: secrets, names and addresses of machines, and for a model
//! also paths on disks and stack traces. Linear in the length of the text.
//!
//! What the model sent itself is known to it and stays: without it, it could not see what was wrong.

mod hosts;
mod known;
mod paths;
mod rule;
mod secrets;
mod trace;

use std::sync::LazyLock;

use redial_proto::{Failure, FieldError, limits};

pub use self::known::Known;
use self::rule::{Hit, Kind, Rule};

/// The rules for every text, in the order in which they are applied: secrets first, so that nothing breaks them into pieces.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| secrets::rules().into_iter().chain(hosts::rules()).collect());
/// Rules for a model only: an operator needs paths of files and ids of requests.
static FOR_MODELS: LazyLock<Vec<Rule>> =
    LazyLock::new(|| paths::rules().into_iter().chain([secrets::random()]).collect());

/// Longer texts are cut before they are searched for secrets; what is shown is shorter still.
const MAX_BYTES: usize = 4 * limits::MAX_ERROR_MESSAGE;

/// Makes a text fit for a model, at most [`limits::MAX_ERROR_MESSAGE`] bytes. A removed piece is replaced by
/// `[removed]`, `[host]` or `[path]`.
pub fn scrub(text: &str, known: &Known<'_>) -> String {
    let text = apply_all(RULES.iter().chain(FOR_MODELS.iter()), cut(&trace::reduce(text)), known);
    limits::shorten(text.trim(), limits::MAX_ERROR_MESSAGE)
}

/// True if a secret would be removed from this text.
pub fn reveals_secret(text: &str, known: &Known<'_>) -> bool {
    let mark = Kind::Secret.mark();
    scrub(text, known).matches(mark).count() > text.matches(mark).count()
}

/// Arguments of at most so many bytes are compared with an error, which may quote what was sent. In more, somebody could list
/// hosts to see which of them stays; and each word of an error is looked for in them.
const MAX_SENT: usize = 4 * 1024;

/// Returns the failure as it may be stored, without hosts and without secrets that nobody declared; its message and
/// diagnostics are within the limit. `own` is the host that requests are sent to, which may be a public one; `sent` are
/// the arguments, whose words stay if they have at most 4 KiB, as do values that were sent.
///
/// Call it after [`Secrets::redact_failure`](crate::Secrets::redact_failure), because a secret may contain a host.
#[must_use]
pub fn redact_failure(mut failure: Failure, own: Option<&str>, sent: &str) -> Failure {
    let details = std::mem::take(&mut failure.details);
    let sent = if sent.len() <= MAX_SENT { sent } else { "" };
    let (own, known) = (own.map(hosts::own), Known::new(sent, &details));
    let redact = |text: &str| {
        let text = apply_all(&own, cut(text), &Known::nothing());
        limits::shorten(&apply_all(RULES.iter(), &text, &known), limits::MAX_ERROR_MESSAGE)
    };
    let without_hosts = |error: &FieldError| FieldError {
        allowed: redact(&error.allowed),
        hint: error.hint.as_deref().map(redact),
        ..error.clone()
    };
    Failure {
        message: redact(&failure.message),
        diagnostics: failure.diagnostics.as_deref().map(redact),
        details: details.iter().map(without_hosts).collect(),
        ..failure
    }
}

/// Cuts a text, not in the middle of what may be a secret: half of one might not look like it.
fn cut(text: &str) -> &str {
    if text.len() <= MAX_BYTES {
        return text;
    }
    let start = &text[..text.floor_char_boundary(MAX_BYTES)];
    let ends = |c: char| !c.is_ascii_alphanumeric() && !"-_+/=.~%".contains(c);
    start.rfind(char::is_whitespace).or_else(|| start.rfind(ends)).map_or("", |end| &start[..end])
}

fn apply_all<'a>(rules: impl IntoIterator<Item = &'a Rule>, text: &str, known: &Known<'_>) -> String {
    rules.into_iter().fold(text.to_owned(), |text, rule| apply(rule, &text, known))
}

fn apply(rule: &Rule, text: &str, known: &Known<'_>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for captures in rule.pattern.captures_iter(text) {
        let Some(piece) = captures.name("x") else { continue };
        let hit = Hit { text, start: piece.start(), end: piece.end() };
        if (rule.is_meant)(&hit) && !known.holds(piece.as_str(), rule.kind) {
            out.push_str(&text[copied..piece.start()]);
            out.push_str(rule.kind.mark());
            copied = piece.end();
        }
    }
    out.push_str(&text[copied..]);
    out
}
