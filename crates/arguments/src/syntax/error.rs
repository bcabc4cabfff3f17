//! Why a text cannot be repaired, and where.

use redial_proto::{Advice, Language, Repair, RepairKind, limits::shorten, repair::MAX_QUOTED};

use crate::{language::pick, refusal::Refusal};

/// A defect that cannot be repaired without a guess.
#[derive(Debug)]
pub(super) struct SyntaxError {
    /// Position in the text, in bytes.
    pub(super) offset: usize,
    /// JSON pointer to the value that contains the position; empty for the whole document.
    pub(super) inside: String,
    /// What is wrong, and what is expected instead.
    pub(super) what: String,
    pub(super) advice: Advice,
}

impl SyntaxError {
    /// Makes the refusal that the model gets. `unwrapped`: the text was the content of a JSON string.
    pub(super) fn refusal(&self, text: &str, unwrapped: bool, language: Language) -> Refusal {
        let message = match language {
            Language::En => self.in_english(text, unwrapped),
            Language::Zh => self.in_chinese(text, unwrapped),
        };
        let at = Some(self.offset).filter(|_| self.advice != Advice::Form);
        Refusal::malformed(message, self.advice).quoting(text, at, language)
    }

    fn in_english(&self, text: &str, unwrapped: bool) -> String {
        let subject = if unwrapped { "the arguments, sent as a JSON string," } else { "the arguments" };
        let cut_off = self.advice == Advice::CutOff;
        let verb = if cut_off { "are cut off" } else { "are not valid JSON" };
        let inside =
            if self.inside.is_empty() { String::new() } else { format!(", in {}", shorten(&self.inside, 300)) };
        let position = position(text, self.offset, Language::En);
        let again = if cut_off { "; send the whole call again" } else { "" };
        format!("{subject} {verb} at {position}{inside}: {}{again}", self.what)
    }

    fn in_chinese(&self, text: &str, unwrapped: bool) -> String {
        let subject = if unwrapped { "参数（以 JSON 字符串的形式给出）" } else { "参数" };
        let position = position(text, self.offset, Language::Zh);
        let inside =
            if self.inside.is_empty() { String::new() } else { format!("、{} 之内", shorten(&self.inside, 300)) };
        let what = &self.what;
        if self.advice == Advice::CutOff {
            format!("{subject}不完整，在{position}{inside}被截断：{what}；请重新发送完整的调用")
        } else {
            format!("{subject}不是有效的 JSON，问题在{position}{inside}：{what}")
        }
    }
}

/// Names line and column, both counted from 1, the column in characters.
pub(super) fn position(text: &str, offset: usize, language: Language) -> String {
    let before = &text[..offset.min(text.len())];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    pick(language, format!("line {line} column {column}"), format!("第 {line} 行第 {column} 列"))
}

/// Makes the record of a change of the text.
pub(crate) fn change(kind: RepairKind, offset: usize, before: &str, after: &str) -> Repair {
    Repair {
        kind,
        path: None,
        offset: u32::try_from(offset).ok(),
        before: shorten(before, MAX_QUOTED),
        after: shorten(after, MAX_QUOTED),
    }
}
