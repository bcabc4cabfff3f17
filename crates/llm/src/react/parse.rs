//! Parses a model's text as a thought and one action, or an answer.
//!
//! Only the first action counts: the model wrote everything after it, such as a second action or an invented
//! observation, without knowing the result.

use redial_proto::{Finish, ReplyCall, TurnReply, TurnRequest};

use super::{
    action::{self, Action},
    block::{Block, blocks},
    labels::Label,
    prompt,
    unlabelled::{self, Found},
};
use crate::{offers::Offers, quoted::unfenced, thoughts};

/// Reads a model's text. Thoughts in tags are set apart first, so nothing in them counts. Damaged arguments are kept
/// as they were written; `cut_off` says that the model reached its limit. If no tools were offered, any text is an
/// answer: all of it, or what stands after the label of an answer.
pub fn read(text: &str, request: &TurnRequest, cut_off: bool) -> TurnReply {
    let split = thoughts::split(unfenced(text));
    let reply = match (request.tools.is_empty(), &split.thought) {
        (false, _) => read_rest(unfenced(&split.rest), request, cut_off),
        (true, None) => plain(text, request, cut_off),
        (true, Some(_)) => plain(&split.rest, request, cut_off),
    };
    let thoughts = [split.thought, reply.thought];
    TurnReply { thought: thoughts::join(thoughts.iter().flatten().map(String::as_str), "\n\n"), ..reply }
}

fn read_rest(text: &str, request: &TurnRequest, cut_off: bool) -> TurnReply {
    let offers = Offers::of(request);
    let blocks = blocks(text);
    let (thought, end) = decide(&blocks, &offers)
        .or_else(|| without_labels(text, &blocks, &offers))
        .or_else(|| decide(&self::blocks(&broken_into_lines(text)?), &offers))
        .unwrap_or((None, End::Answer(String::new())));
    let finish = |wanted| if cut_off { Finish::Length } else { wanted };
    match end {
        End::Call(call) => {
            TurnReply { thought, calls: vec![call], finish: finish(Finish::ToolCalls), ..TurnReply::default() }
        }
        End::Answer(answer) if !answer.is_empty() => {
            TurnReply { thought, text: Some(answer), finish: finish(Finish::Stop), ..TurnReply::default() }
        }
        End::Unclear => TurnReply {
            text: Some(text.to_owned()),
            problem: Some(prompt::unclear(request.language).to_owned()),
            finish: finish(Finish::Other),
            ..TurnReply::default()
        },
        End::Answer(_) => TurnReply {
            problem: Some(prompt::problem(request.language, cut_off).to_owned()),
            text: labelled_thoughts(&blocks),
            finish: finish(Finish::Other),
            ..TurnReply::default()
        },
    }
}

/// Makes the reply of a model without tools. Actions and observations are words of its answer.
fn plain(text: &str, request: &TurnRequest, cut_off: bool) -> TurnReply {
    let inner = unfenced(text);
    let labelled = labelled_answer(inner).or_else(|| labelled_answer(&broken_into_lines(inner)?));
    let (thought, answer) = match labelled {
        Some((thought, answer)) if answer.is_empty() => (None, thought.unwrap_or_default()),
        Some(found) => found,
        None => (None, text.trim().to_owned()),
    };
    let answer = (!answer.is_empty()).then_some(answer);
    let finish = match answer {
        _ if cut_off => Finish::Length,
        Some(_) => Finish::Stop,
        None => Finish::Other,
    };
    let problem = answer.is_none().then(|| prompt::problem(request.language, cut_off).to_owned());
    TurnReply { thought, text: answer, problem, finish, ..TurnReply::default() }
}

/// Returns the answer after its label, with the thoughts before it.
fn labelled_answer(text: &str) -> Option<(Option<String>, String)> {
    let blocks = blocks(text);
    let (last, before) = blocks.split_last()?;
    (last.label == Some(Label::Answer)).then(|| (labelled_thoughts(before), last.text()))
}

enum End {
    Call(ReplyCall),
    Answer(String),
    /// An action with more than one reading.
    Unclear,
}

/// Finds the first action or answer, with the thoughts before it.
fn decide(blocks: &[Block<'_>], offers: &Offers) -> Option<(Option<String>, End)> {
    let answered = blocks.last().is_some_and(|block| block.label == Some(Label::Answer));
    for (n, block) in blocks.iter().enumerate() {
        let end = match block.label {
            Some(Label::Answer) => End::Answer(block.text()),
            Some(Label::Action) => {
                let input = blocks.get(n + 1).filter(|next| next.label == Some(Label::Input));
                match action::read(block, input, offers) {
                    // "Action: None" in front of an answer.
                    Action::None if answered => continue,
                    Action::None => return None,
                    Action::Unclear => End::Unclear,
                    Action::Call(call) => End::Call(call),
                }
            }
            _ => continue,
        };
        return Some((labelled_thoughts(&blocks[..n]), end));
    }
    None
}

/// Finds a call or an answer in a text without labels for them.
fn without_labels(text: &str, blocks: &[Block<'_>], offers: &Offers) -> Option<(Option<String>, End)> {
    let (before, found) = unlabelled::read(text, blocks, offers)?;
    let end = match found {
        Found::Call(call) => End::Call(call),
        Found::Answer(answer) => End::Answer(answer),
    };
    Some((labelled_thoughts(&self::blocks(&before)), end))
}

/// Returns the thoughts; text without a label is a thought as well.
fn labelled_thoughts(blocks: &[Block<'_>]) -> Option<String> {
    let thoughts = blocks.iter().filter(|block| matches!(block.label, None | Some(Label::Thought)));
    let thoughts: Vec<String> = thoughts.map(Block::text).filter(|text| !text.is_empty()).collect();
    (!thoughts.is_empty()).then(|| thoughts.join("\n"))
}

/// Breaks the text into lines before labels in the middle of lines: an action with an input after it, or a final
/// answer. Only for text that cannot be read otherwise.
fn broken_into_lines(text: &str) -> Option<String> {
    // The lower-case text has the same length, so offsets are valid in both.
    let lower = text.to_ascii_lowercase();
    let input = lower.find("action input:");
    let action = input.and_then(|input| Some((lower[..input].find("action:")?, input)));
    let answer = ["final answer:", "最终答案：", "最终答案:"].iter().find_map(|label| lower.find(label));
    match (action, answer) {
        (Some((action, input)), _) => Some([&text[..action], &text[action..input], &text[input..]].join("\n")),
        (None, Some(answer)) => Some([&text[..answer], &text[answer..]].join("\n")),
        (None, None) => None,
    }
}
