//! Parses a model's text as a thought and one action, or an answer.
//!
//! Only the first action counts: the model wrote everything after it, such as a second action or an invented observation,
//! without knowing the result.

use redial_proto::{Finish, ReplyCall, TurnReply, TurnRequest};

use super::{
    action,
    block::Block,
    labels::{Label, label},
    prompt,
};

/// Reads a model's text. Damaged arguments are kept as they were written; `cut_off` says that the model reached its limit.
/// If no tools were offered, any text is an answer.
pub fn read(text: &str, request: &TurnRequest, cut_off: bool) -> TurnReply {
    let text = unfenced(text);
    let blocks = blocks(text);
    let found = decide(&blocks).or_else(|| decide(&self::blocks(&broken_into_lines(text)?)));
    let finish = |wanted| if cut_off { Finish::Length } else { wanted };
    let (thought, end) = found.unwrap_or((None, End::Answer(String::new())));
    match end {
        End::Call(call) => {
            TurnReply { thought, calls: vec![call], finish: finish(Finish::ToolCalls), ..TurnReply::default() }
        }
        End::Answer(answer) if !answer.is_empty() => {
            TurnReply { thought, text: Some(answer), finish: finish(Finish::Stop), ..TurnReply::default() }
        }
        End::Answer(_) => {
            let text = thoughts(&blocks).unwrap_or_default();
            let plain_answer = request.tools.is_empty() && !text.is_empty();
            TurnReply {
                problem: (!plain_answer).then(|| prompt::problem(request.language, cut_off).to_owned()),
                text: (!text.is_empty()).then_some(text),
                finish: finish(if plain_answer { Finish::Stop } else { Finish::Other }),
                ..TurnReply::default()
            }
        }
    }
}

enum End {
    Call(ReplyCall),
    Answer(String),
}

/// The parts of the text. An answer contains all the rest of the text.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = vec![Block { label: None, first: "", more: "" }];
    let (mut begin, mut at) = (0, 0);
    let mut last = None;
    for line in text.split_inclusive('\n') {
        if last != Some(Label::Answer)
            && let Some((found, first)) = label(line)
        {
            if let Some(block) = blocks.last_mut() {
                block.more = &text[begin..at];
            }
            blocks.push(Block { label: Some(found), first, more: "" });
            (last, begin) = (Some(found), at + line.len());
        }
        at += line.len();
    }
    if let Some(block) = blocks.last_mut() {
        block.more = &text[begin..];
    }
    blocks
}

/// The first action or answer, with the thoughts before it.
fn decide(blocks: &[Block<'_>]) -> Option<(Option<String>, End)> {
    let answered = blocks.last().is_some_and(|block| block.label == Some(Label::Answer));
    for (n, block) in blocks.iter().enumerate() {
        let end = match block.label {
            Some(Label::Answer) => End::Answer(block.text()),
            Some(Label::Action) => {
                let input = blocks.get(n + 1).filter(|next| next.label == Some(Label::Input));
                match action::read(block, input) {
                    // "Action: None" in front of an answer.
                    None if answered => continue,
                    None => return None,
                    Some(call) => End::Call(call),
                }
            }
            _ => continue,
        };
        return Some((thoughts(&blocks[..n]), end));
    }
    None
}

/// The thoughts; text without a label is a thought as well.
fn thoughts(blocks: &[Block<'_>]) -> Option<String> {
    let thoughts = blocks.iter().filter(|block| matches!(block.label, None | Some(Label::Thought)));
    let thoughts: Vec<String> = thoughts.map(Block::text).filter(|text| !text.is_empty()).collect();
    (!thoughts.is_empty()).then(|| thoughts.join("\n"))
}

/// The text without a code fence around all of it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some((fence, inner)) = text.split_once('\n') else { return text };
    let is_fence = fence.strip_prefix("```").is_some_and(|kind| kind.trim().chars().all(char::is_alphanumeric));
    if !is_fence {
        return text;
    }
    inner.strip_suffix("```").unwrap_or(inner).trim()
}

/// The text with line breaks before labels in the middle of lines: an action with an input after it, or a final answer.
/// Only for text that cannot be read otherwise.
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
