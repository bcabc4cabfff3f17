//! Calls and answers without labels: `{"action": …, "action_input": …}`, as other ReAct prompts ask for, and calls in
//! the forms of function calling.

use redial_proto::ReplyCall;

use super::{block::Block, labels::Label};
use crate::{
    invented,
    json::extent::{Search, Style},
    offers::Offers,
    written::{self, object},
};

/// The tool that stands for an answer in other prompts.
const ANSWERS: [&str; 2] = ["final answer", "final_answer"];

/// Damaged objects of one text that are looked at: each look reads the rest of the text.
const MAX_DAMAGED: u32 = 4;

/// What a text without labels says.
pub(super) enum Found {
    Call(ReplyCall),
    Answer(String),
}

/// Reads a text without an action or an answer, as the thoughts before what was found, and what was found. Only one
/// reading may exist: the text ends with the object, and no other object of it is a call.
pub(super) fn read(text: &str, blocks: &[Block<'_>], offers: &Offers) -> Option<(String, Found)> {
    if offers.is_empty() || blocks.iter().any(|block| matches!(block.label, Some(Label::Action | Label::Input))) {
        return None;
    }
    // What follows an observation was written without knowing it.
    let invented = blocks.iter().skip(1).find(|block| block.label == Some(Label::Observation));
    let text = &text[..invented.map_or(text.len(), |block| block.begin)];
    let text = text[..invented::begin(text).unwrap_or(text.len())].trim_end();
    let body = text.strip_suffix("```").unwrap_or(text).trim_end();
    if let Some((begin, found)) = object_at_end(body, offers) {
        return Some((before(&body[..begin]).to_owned(), found));
    }
    let written = written::read(text, offers)?;
    let [call] = <[ReplyCall; 1]>::try_from(written.calls).ok()?;
    Some((written.rest, Found::Call(call)))
}

/// Finds the object on lines of its own with which the text ends, if it is the only one that says something.
fn object_at_end(text: &str, offers: &Offers) -> Option<(usize, Found)> {
    let mut search = Search::of(text);
    let (mut at, mut object_end, mut damaged_left) = (0, 0, MAX_DAMAGED);
    for line in text.split_inclusive('\n') {
        let begin = at + line.len() - line.trim_start().len();
        at += line.len();
        if begin < object_end || !text[begin..].starts_with('{') {
            continue;
        }
        let Some(end) = search.end(text, begin, Style::Strict) else {
            if damaged_left == 0 {
                continue;
            }
            damaged_left -= 1;
            let damaged = object::damaged(&text[begin..], offers)
                .filter(|found| begin + found.end == text.len() && object::begins_like_a_call(&text[begin..]));
            match damaged {
                Some(found) => return Some((begin, Found::Call(found.call))),
                None => continue,
            }
        };
        let alone = begin == 0 || before(&text[..begin]).is_empty();
        let found = said(&text[begin..end], alone, offers);
        if found.is_some() || end == text.len() {
            return found.filter(|_| end == text.len()).map(|found| (begin, found));
        }
        object_end = end;
    }
    None
}

/// Reads what an object says. `alone`: there is nothing before it.
fn said(object: &str, alone: bool, offers: &Offers) -> Option<Found> {
    let found = object::read(object).filter(|found| !found.has_more)?;
    let arguments = found.arguments?;
    if ANSWERS.iter().any(|name| found.name.eq_ignore_ascii_case(name)) {
        return Some(Found::Answer(arguments));
    }
    // The check of calls tells which names are offered, if this one is not.
    let call = ReplyCall { name: offers.own(&found.name), arguments };
    (alone || offers.has(&call.name)).then_some(Found::Call(call))
}

/// Returns the words before an object, without the fence that begins its code block.
fn before(text: &str) -> &str {
    let text = text.trim_end();
    let without = text.strip_suffix("json").map_or(text, str::trim_end);
    without.strip_suffix("```").map_or(text, str::trim_end)
}
