//! Words, the name of a call and end markers around the only object of a text.
//!
//! What is left out must not be able to hold arguments or to change what the object means. So the words have no brackets,
//! quotes, colons or equals signs (but for a colon right before the object), and an object inside of thoughts stays where
//! it is.

use redial_proto::RepairKind;

use super::{error::SyntaxError, scan::Scan};

/// A tag whose name contains one of these, in any case, is around thoughts: an object in them is not a call. So every
/// tag that is read as thoughts in a model's reply is one, and more.
const THOUGHTS: [&str; 4] = ["think", "thought", "reason", "reflect"];
/// Brackets of any kind, and quotes.
const BRACKETS: &str = "{}[]()<>（）【】［］｛｝〈〉《》〔〕◁▷";
const QUOTES: &str = "\"`“”„‘’«»「」『』";
/// Longest name of a tag or of a call, in characters.
const MAX_NAME: usize = 64;

/// What stands before the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Opening {
    /// The object stands in the parentheses of a call: `callback({…})`.
    pub(super) call: bool,
}

impl Scan<'_> {
    /// Leaves out what stands before the object; nothing changes if it could be more than words.
    pub(super) fn open_surroundings(&mut self) -> Result<Opening, SyntaxError> {
        let rest = self.rest();
        let Some(prefix) = rest.find('{').map(|at| &rest[..at]) else { return Ok(Opening::default()) };
        let Some(opening) = opening(prefix, self.takes_words) else { return Ok(Opening::default()) };
        if !prefix.is_empty() {
            self.replace(RepairKind::SurroundingText, prefix.len(), "")?;
        }
        Ok(opening)
    }

    /// Leaves out what stands after the object; false if it could be more than words.
    pub(super) fn close_surroundings(&mut self, opening: Opening) -> Result<bool, SyntaxError> {
        let rest = self.rest();
        if !is_closing(rest, opening, self.takes_words) {
            return Ok(false);
        }
        self.replace(RepairKind::SurroundingText, rest.len(), "")?;
        Ok(true)
    }
}

fn opening(prefix: &str, takes_words: bool) -> Option<Opening> {
    let before = prefix.trim_end();
    if let Some(call) = before.strip_suffix('(') {
        let words = call.trim_end_matches(is_of_name);
        let name = &call[words.len()..];
        let is_call = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().count() <= MAX_NAME;
        return (is_call && are_words_before(words, takes_words)).then_some(Opening { call: true });
    }
    let mut words = before;
    while let Some(tag) = words.rfind('<').filter(|at| is_tag(&words[*at..])) {
        words = words[..tag].trim_end();
    }
    are_words_before(words, takes_words).then_some(Opening { call: false })
}

const fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

fn is_closing(suffix: &str, opening: Opening, takes_words: bool) -> bool {
    let mut rest = suffix.trim_start();
    if opening.call {
        let Some(after) = rest.strip_prefix(')') else { return false };
        rest = after.trim_start();
    }
    rest = rest.strip_prefix(';').unwrap_or(rest).trim_start();
    while let Some(end) = rest.find('>').filter(|end| is_tag(&rest[..=*end])) {
        rest = rest[end + 1..].trim_start();
    }
    let goes_on = rest.starts_with([',', '，', '、', '+']);
    !goes_on && are_words(rest) && (takes_words || rest.is_empty())
}

/// True for `<tool_call>`, `</tool_call>`, `<|im_end|>` and the like, but not around thoughts.
fn is_tag(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else { return false };
    let name = inside.trim_matches(['/', '|', '｜']);
    let is_name = !name.is_empty()
        && name.chars().count() <= MAX_NAME
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '▁' | '.'));
    is_name && !is_of_thoughts(name)
}

fn is_of_thoughts(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    THOUGHTS.iter().any(|word| lower.contains(word))
}

/// True if a text, in which square brackets are refused anyway, has a tag around thoughts.
pub(super) fn has_thoughts(text: &str) -> bool {
    let mut tags = text.split('<').skip(1).filter_map(|rest| rest.split_once('>'));
    text.contains(['◁', '▷']) || tags.any(|(name, _)| is_of_thoughts(name))
}

fn are_words_before(words: &str, takes_words: bool) -> bool {
    let words = words.trim();
    let words = words.strip_suffix([':', '：']).unwrap_or(words);
    (takes_words || words.is_empty()) && are_words(words)
}

/// True for words that cannot hold arguments. An apostrophe stands between letters.
fn are_words(text: &str) -> bool {
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let fits = match c {
            '\'' | '’' => before.is_alphabetic() && characters.peek().is_some_and(|next| next.is_alphabetic()),
            c => !BRACKETS.contains(c) && !QUOTES.contains(c) && !matches!(c, ':' | '：' | '=' | '\\'),
        };
        if !fits {
            return false;
        }
        before = c;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_no_arguments() {
        for text in
            ["", "Here's the call", "It is 20 °C, isn't it?", "巴黎的天气。", "**bold** - 1. list", "# note; done"]
        {
            assert!(are_words(text), "{text}");
        }
        for text in
            ["(as asked)", "a [1]", "say \"x\"", "'x'", "days: 2", "days=2", "`x`", "<b>", "「x」", "◁x▷", "C:\\"]
        {
            assert!(!are_words(text), "{text}");
        }
    }

    #[test]
    fn tags_have_a_name_and_hold_no_thoughts() {
        for tag in ["<tool_call>", "</tool_call>", "<|im_end|>", "</s>", "<｜tool▁call▁end｜>", "<|python_tag|>"]
        {
            assert!(is_tag(tag), "{tag}");
        }
        for tag in ["<>", "<a b>", "</think>", "<THINK>", "<|thinking|>", "<a", "a>", "<<a>>"] {
            assert!(!is_tag(tag), "{tag}");
        }
        for tag in ["<|START_THINKING|>", "<|begin_of_thought|>", "<Reflection>", "</reasoning>", "<reason>"] {
            assert!(!is_tag(tag), "{tag}");
        }
    }
}
