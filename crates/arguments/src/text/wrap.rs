//! What may stand around the arguments: blanks, comments, and a Markdown fence with words outside of it.

use redial_proto::RepairKind;

use super::{fault::Fault, scan::Scan};

const FENCE: &str = "```";

impl Scan<'_> {
    /// The whole text: one value, perhaps in a fence.
    pub(super) fn document(&mut self) -> Result<(), Fault> {
        self.blanks()?;
        let fenced = self.open_fence()?;
        self.blanks()?;
        self.value()?;
        self.blanks()?;
        self.close_fence(fenced)
    }

    /// Words before a fence are left out only if nothing in them could be arguments, too.
    fn open_fence(&mut self) -> Result<bool, Fault> {
        let rest = self.rest();
        if rest.starts_with(['{', '[', '"', '\'', '“', '‘']) {
            return Ok(false);
        }
        let fence = if rest.starts_with('`') && !rest.starts_with(FENCE) { "`" } else { FENCE };
        let Some(words) = rest.find(fence) else { return Err(self.no_object()) };
        if has_brackets(&rest[..words]) {
            return Err(self.fault(
                "arguments stand outside of the fence, too; only one object is needed",
                "代码块之外也有参数；只需要一个对象",
            ));
        }
        let after = &rest[words + fence.len()..];
        let language = after.len() - after.trim_start_matches(|c: char| c.is_alphanumeric() || "+-_".contains(c)).len();
        self.replace(RepairKind::CodeFence, words + fence.len() + language, "")?;
        Ok(true)
    }

    fn close_fence(&mut self, fenced: bool) -> Result<(), Fault> {
        let rest = self.rest();
        if rest.is_empty() {
            return Ok(());
        }
        let words = rest.trim_start_matches('`');
        if words.len() < rest.len() && !has_brackets(words) && (fenced || words.trim().is_empty()) {
            return self.replace(RepairKind::CodeFence, rest.len(), "");
        }
        Err(match self.peek() {
            Some(c @ ('}' | ']')) => self.fault(
                format!("{c:?} ends nothing; perhaps another one was too early"),
                format!("{c:?} 没有与之对应的开头；可能前面有一个写早了"),
            ),
            _ => self.fault(
                "more text follows after the arguments; only one object is needed",
                "参数之后还有多余的文本；只需要一个对象",
            ),
        })
    }

    fn no_object(&self) -> Fault {
        let start: String = self.rest().chars().take(20).collect();
        if start.is_empty() {
            return self.fault(
                "there are only blanks and comments; a JSON object is needed, at least {}",
                "只有空白和注释；需要一个 JSON 对象，至少是 {}",
            );
        }
        self.fault(
            format!("a JSON object begins with '{{', not with {start:?}"),
            format!("JSON 对象以 '{{' 开头，而不是 {start:?}"),
        )
    }
}

fn has_brackets(text: &str) -> bool {
    text.contains(['{', '}', '[', ']', '`'])
}
