//! Shortening a text, and saying so in it.

use redial_proto::{Language, MessageCall};
use serde_json::json;

use super::read::READ_RESULT;

/// Returns what stands at the start of a conversation that lost its oldest messages. It holds no number, so that it
/// does not change from turn to turn.
pub(super) const fn left_out(language: Language) -> &'static str {
    match language {
        Language::En => "[Earlier messages of this conversation are left out here: it has become too long.]",
        Language::Zh => "[对话过长，此处省略了较早的消息。]",
    }
}

/// How a tool result is shortened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Longest text, in bytes, with the note.
    pub(super) most: usize,
    /// Keep some of the end, too.
    pub(super) tail: bool,
    pub(super) language: Language,
}

/// A text of which the middle may be missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    /// The beginning, or all of it.
    pub(super) head: &'a str,
    /// The end, if the beginning is not all.
    pub(super) tail: &'a str,
    /// Length of all of it.
    pub(super) bytes: usize,
}

impl<'a> Text<'a> {
    pub(super) const fn whole(text: &'a str) -> Self {
        Self { head: text, tail: "", bytes: text.len() }
    }

    /// Returns at most so many bytes of the beginning, in whole characters.
    fn first(self, most: usize) -> &'a str {
        &self.head[..self.head.floor_char_boundary(most)]
    }

    /// Returns at most so many bytes of the end, in whole characters.
    fn last(self, most: usize) -> &'a str {
        let known = if self.head.len() == self.bytes { self.head } else { self.tail };
        &known[known.ceil_char_boundary(known.len().saturating_sub(most))..]
    }
}

/// Cuts a tool result to its limit: as it is, or with a note that says how to read the rest.
pub(super) fn result(text: Text<'_>, call_id: &str, form: Form) -> Option<String> {
    shorten(text, form, |missing, offset| {
        let arguments = json!({"call_id": call_id, "offset": offset});
        let total = text.bytes;
        match form.language {
            Language::En => format!(
                "\n[… {missing} of {total} bytes left out; to read on, call {READ_RESULT} with {arguments} …]\n"
            ),
            Language::Zh => format!(
                "\n[…… 此处省略 {missing} 字节（共 {total} 字节）；如需继续读取，请调用 {READ_RESULT}，参数 {arguments} ……]\n"
            ),
        }
    })
}

/// Cuts any other text to its limit.
pub(super) fn text(text: Text<'_>, form: Form) -> Option<String> {
    shorten(text, form, |missing, _| match form.language {
        Language::En => format!("\n[… {missing} bytes left out …]\n"),
        Language::Zh => format!("\n[…… 此处省略 {missing} 字节 ……]\n"),
    })
}

/// Cuts arguments to their limit. They have to stay a JSON object, so they go as a whole.
pub(super) fn arguments(call: &MessageCall, most: usize) -> Option<String> {
    let shorter = json!({"left_out": format!("{} bytes", call.arguments.len())}).to_string();
    (call.arguments.len() > most.max(shorter.len())).then_some(shorter)
}

/// Shortens a text; `None` if it fits. `note` gets the bytes that are missing and the offset of the first of them.
fn shorten(text: Text<'_>, form: Form, note: impl Fn(usize, usize) -> String) -> Option<String> {
    if text.bytes <= form.most {
        return None;
    }
    // No number in the note is larger than this.
    let room = form.most.saturating_sub(note(text.bytes, text.bytes).len());
    let (head, tail) = if form.tail { (room - room / 3, room / 3) } else { (room, 0) };
    let (head, tail) = (text.first(head), text.last(tail));
    let note = note(text.bytes - tail.len() - head.len(), head.len());
    if note.len() > form.most {
        return Some(text.first(form.most).to_owned());
    }
    Some(format!("{head}{note}{tail}"))
}
