//! What a tool or a service wrote, without what must not reach a model: secrets, names and addresses of machines, paths
//! on their disks, stack traces. Pure, and linear in the length of the text.
//!
//! What the model sent itself is known to it and stays: without it, it could not see what was wrong.

mod hosts;
mod known;
mod paths;
mod rule;
mod rules;
mod secrets;
mod trace;

use redial_proto::limits;

pub use self::known::Known;
use self::rule::{Hit, Kind, Rule};

/// Longer texts are cut before they are searched for secrets; what is shown is shorter still.
const MAX_BYTES: usize = 4 * limits::MAX_ERROR_MESSAGE;

/// A text fit for a model, at most [`limits::MAX_ERROR_MESSAGE`] bytes. A removed piece is replaced by
/// `[removed]`, `[host]` or `[path]`.
pub fn scrub(text: &str, known: &Known<'_>) -> String {
    let mut text = cut(&trace::reduce(text)).to_owned();
    for rule in rules::all() {
        text = apply(rule, &text, known);
    }
    limits::shorten(text.trim(), limits::MAX_ERROR_MESSAGE)
}

/// True if a secret would be removed from this text.
pub(super) fn reveals_secret(text: &str, known: &Known<'_>) -> bool {
    let mark = Kind::Secret.mark();
    scrub(text, known).matches(mark).count() > text.matches(mark).count()
}

/// The start of a text, not in the middle of a word: half a secret might not look like one.
fn cut(text: &str) -> &str {
    if text.len() <= MAX_BYTES {
        return text;
    }
    let start = &text[..text.floor_char_boundary(MAX_BYTES)];
    start.rfind(char::is_whitespace).map_or("", |blank| &start[..blank])
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
