//! Why a text is not repaired, and where.

use redial_proto::{Language, Repair, RepairKind, limits::shorten, repair::MAX_QUOTED};

use crate::{refusal::Refusal, words::pick};

/// What cannot be repaired without a guess.
#[derive(Debug)]
pub(super) struct Fault {
    /// Bytes from the start of the text.
    pub(super) offset: usize,
    /// JSON pointer to the value that is being read there; empty for the whole.
    pub(super) inside: String,
    /// What is wrong, and what would be right.
    pub(super) what: String,
    /// The text ends before the arguments do.
    pub(super) cut_off: bool,
}

impl Fault {
    /// The fault in words, as the model gets it. `unwrapped`: the text was held by a JSON string.
    pub(super) fn refusal(&self, text: &str, unwrapped: bool, language: Language) -> Refusal {
        match language {
            Language::En => self.in_english(text, unwrapped),
            Language::Zh => self.in_chinese(text, unwrapped),
        }
    }

    fn in_english(&self, text: &str, unwrapped: bool) -> Refusal {
        let subject = if unwrapped { "the text that the arguments are as a JSON string" } else { "the arguments" };
        let verb = match (self.cut_off, unwrapped) {
            (true, false) => "are cut off",
            (true, true) => "is cut off",
            (false, false) => "are no valid JSON",
            (false, true) => "is no valid JSON",
        };
        let inside =
            if self.inside.is_empty() { String::new() } else { format!(", in {}", shorten(&self.inside, 300)) };
        let place = place(text, self.offset, Language::En);
        let again = if self.cut_off { "; send the whole call again" } else { "" };
        Refusal::malformed(format!("{subject} {verb} at {place}{inside}: {}{again}", self.what))
    }

    fn in_chinese(&self, text: &str, unwrapped: bool) -> Refusal {
        let subject = if unwrapped { "参数（以 JSON 字符串的形式给出）" } else { "参数" };
        let place = place(text, self.offset, Language::Zh);
        let inside =
            if self.inside.is_empty() { String::new() } else { format!("、{} 之内", shorten(&self.inside, 300)) };
        let what = &self.what;
        Refusal::malformed(if self.cut_off {
            format!("{subject}不完整，在{place}{inside}被截断：{what}；请重新发送完整的调用")
        } else {
            format!("{subject}不是有效的 JSON，问题在{place}{inside}：{what}")
        })
    }
}

/// Line and column, both from 1, the column in characters.
pub(super) fn place(text: &str, offset: usize, language: Language) -> String {
    let before = &text[..offset.min(text.len())];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    pick(language, format!("line {line} column {column}"), format!("第 {line} 行第 {column} 列"))
}

/// A change of the text, for the record.
pub(super) fn change(kind: RepairKind, offset: usize, before: &str, after: &str) -> Repair {
    Repair {
        kind,
        path: None,
        offset: u32::try_from(offset).ok(),
        before: shorten(before, MAX_QUOTED),
        after: shorten(after, MAX_QUOTED),
    }
}
