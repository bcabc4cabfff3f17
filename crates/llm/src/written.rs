//! Calls that a model wrote into its text, because its server does not know the form and left them there.
//!
//! | form | of |
//! | --- | --- |
//! | `<tool_call>{"name": …, "arguments": {…}}</tool_call>` | Hermes, Qwen and many more; `<function_call>` too |
//! | `<function=name>{…}</function>` | Llama |
//! | `<\|python_tag\|>{"name": …, "parameters": {…}}`, several with `;` | Llama |
//! | `[TOOL_CALLS][{"name": …, "arguments": {…}}]`, `[TOOL_CALLS]name[ARGS]{…}` | Mistral |
//! | the text is one such object, perhaps in a code fence | small models |
//!
//! A call counts only if it names an offered tool; any other text stays text. A call of another tool counts behind a
//! marker, beside a call of an offered tool or if the text has nothing but such calls: nobody who only explains the form
//! writes that, and the model must hear that there is no such tool. A damaged call of an offered tool becomes a call with
//! its arguments as written: their check repairs them, or tells the model what is wrong. Markers in code, in JSON and
//! between quotation marks are text.

pub(crate) mod object;
mod tags;

use redial_proto::ReplyCall;

use self::tags::{MARKERS, Reader};
use crate::{
    json::extent::{self, Style},
    offers::Offers,
    quoted::{Quoted, unfenced},
};

/// What servers leave at the end of a text.
const ENDS: [&str; 6] = ["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|endoftext|>", "</s>"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) rest: String,
    /// At least one.
    pub(crate) calls: Vec<ReplyCall>,
}

/// Reads the calls in a text that has no thoughts any more; `None` if there are none.
pub(crate) fn read(text: &str, offers: &Offers) -> Option<Written> {
    if offers.is_empty() || !text.contains(['{', '<', '[']) {
        return None;
    }
    let text = without_end(unfenced(text));
    if let Some(call) = whole(text, offers) {
        return Some(Written { rest: String::new(), calls: vec![call] });
    }
    let quoted = Quoted::of(text);
    let written = marked(text, &quoted, Reader::of(text, offers))?;
    let known = written.rest.is_empty() || written.calls.iter().any(|call| offers.has(&call.name));
    known.then_some(written)
}

/// Reads the calls behind markers, and the text without them; `None` if there are none.
fn marked(text: &str, quoted: &Quoted<'_>, mut reader: Reader<'_>) -> Option<Written> {
    let mut rest = String::new();
    let mut calls = Vec::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = text[at..].find(['<', '[']) {
        let begin = at + found;
        at = begin + 1;
        let marker = MARKERS.iter().find(|(marker, _)| text[begin..].starts_with(marker));
        let Some((marker, form)) = marker.filter(|(marker, _)| !quoted.contains(&(begin..begin + marker.len()))) else {
            continue;
        };
        let Some(found) = reader.read(*form, &text[begin + marker.len()..]) else { continue };
        rest.push_str(&text[copied..begin]);
        calls.extend(found.calls);
        at = begin + marker.len() + found.length;
        copied = at;
    }
    rest.push_str(&text[copied..]);
    (!calls.is_empty()).then(|| Written { rest: rest.trim().to_owned(), calls })
}

/// Reads the call, if the whole text is one: an object with a name and arguments and nothing else.
fn whole(text: &str, offers: &Offers) -> Option<ReplyCall> {
    if !text.starts_with('{') {
        return None;
    }
    match extent::end(text, Style::Strict) {
        Ok(end) if end == text.len() => {
            let found = object::read(text)?;
            let arguments = found.arguments.filter(|_| !found.has_more && offers.has(&found.name))?;
            Some(ReplyCall { name: offers.own(&found.name), arguments })
        }
        Ok(_) => None,
        Err(_) => {
            let found = object::damaged(text, offers)?;
            (object::begins_like_a_call(text) && found.end == text.len()).then_some(found.call)
        }
    }
}

fn without_end(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(shorter) = ENDS.iter().find_map(|end| text.strip_suffix(end)) {
        text = shorter.trim_end();
    }
    text
}
