//! Separates the thoughts of a reasoning model from the rest of its text.
//!
//! Servers with a parser send thoughts in a field of their own. Others leave them in the text, often without the tag
//! that opens them, because the chat template wrote it. The rule, which all readers use:
//!
//! - Everything up to the last tag that closes thoughts is thoughts, also words and calls before the tag that opens
//!   them.
//! - A tag that opens thoughts and is never closed makes everything thoughts: the model was cut off, or forgot to
//!   answer.
//! - A tag in code, in a JSON object or between quotation marks is quoted. Only if thoughts are open and nothing else
//!   closes them does such a tag close them.

use std::ops::Range;

use crate::quoted::Quoted;

/// The words in tags such as `<think>`.
const WORDS: [&str; 6] = ["think", "thinking", "thought", "thoughts", "reasoning", "seed:think"];
/// Tags of another form: the one that opens thoughts, and the one that closes them.
const OTHERS: [(&str, &str); 3] =
    [("[THINK]", "[/THINK]"), ("<|START_THINKING|>", "<|END_THINKING|>"), ("◁think▷", "◁/think▷")];

/// A text in two parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    /// The thoughts without their tags.
    pub(crate) thought: Option<String>,
    /// The rest: an answer, calls, or nothing.
    pub(crate) rest: String,
}

struct Tag {
    range: Range<usize>,
    opens: bool,
    quoted: bool,
}

/// Separates thoughts from the rest. A text without thoughts stays as it is.
pub(crate) fn split(text: &str) -> Split {
    let mut tags = tags(text);
    let Some(end) = end(&mut tags, text.len()) else {
        return Split { thought: None, rest: text.to_owned() };
    };
    let mut thoughts = Vec::new();
    let mut begin = 0;
    for tag in tags.iter().filter(|tag| !tag.quoted && tag.range.start < end) {
        thoughts.push(&text[begin..tag.range.start]);
        begin = tag.range.end;
    }
    thoughts.push(&text[begin..end]);
    Split { thought: join(thoughts, "\n"), rest: text[end..].trim_start().to_owned() }
}

/// Joins thoughts from several places, without empty ones.
pub(crate) fn join<'a>(thoughts: impl IntoIterator<Item = &'a str>, between: &str) -> Option<String> {
    let thoughts: Vec<&str> = thoughts.into_iter().map(str::trim).filter(|thought| !thought.is_empty()).collect();
    (!thoughts.is_empty()).then(|| thoughts.join(between))
}

/// Returns the offset at which the thoughts end; `None` if there are none. A quoted tag that closes the thoughts counts
/// as not quoted afterwards.
fn end(tags: &mut [Tag], length: usize) -> Option<usize> {
    let last = |opens: bool, quoted: bool| {
        let mut tags = tags.iter().enumerate().rev();
        tags.find(|(_, tag)| tag.opens == opens && tag.quoted == quoted).map(|(index, tag)| (index, tag.range.end))
    };
    let closed = last(false, false);
    let opened = last(true, false).filter(|(index, _)| closed.is_none_or(|(close, _)| close < *index));
    match (opened, last(false, true)) {
        (None, _) => closed.map(|(_, end)| end),
        (Some((open, _)), Some((close, end))) if open < close => {
            tags[close].quoted = false;
            Some(end)
        }
        (Some(_), _) => Some(length),
    }
}

fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find(['<', '[', '◁']) {
        let begin = at + found;
        at = begin + text[begin..].chars().next().map_or(1, char::len_utf8);
        if let Some((length, opens)) = tag_at(&text[begin..]) {
            at = begin + length;
            tags.push(Tag { range: begin..at, opens, quoted: false });
        }
    }
    if !tags.is_empty() {
        let quoted = Quoted::of(text);
        for tag in &mut tags {
            tag.quoted = quoted.contains(&tag.range);
        }
    }
    tags
}

/// Returns the length of the tag with which the text begins, and whether it opens thoughts.
fn tag_at(text: &str) -> Option<(usize, bool)> {
    let starts = |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    for (open, close) in OTHERS {
        match (starts(open), starts(close)) {
            (true, _) => return Some((open.len(), true)),
            (_, true) => return Some((close.len(), false)),
            _ => {}
        }
    }
    let inner = text.strip_prefix('<')?;
    let (inner, opens) = inner.strip_prefix('/').map_or((inner, true), |inner| (inner, false));
    let after = WORDS.iter().filter_map(|word| {
        let same = inner.get(..word.len())?.eq_ignore_ascii_case(word);
        inner[word.len()..].trim_start_matches(' ').strip_prefix('>').filter(|_| same)
    });
    after.into_iter().next().map(|after| (text.len() - after.len(), opens))
}
