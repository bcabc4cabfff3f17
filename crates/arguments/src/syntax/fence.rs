//! The document around the arguments: whitespace, comments, and a Markdown code fence with prose outside it.

use redial_proto::RepairKind;

use super::{error::SyntaxError, scan::Scan};

const FENCE: &str = "```";

impl Scan<'_> {
    /// Reads the whole text: one value, perhaps in a code fence.
    pub(super) fn document(&mut self) -> Result<(), SyntaxError> {
        self.whitespace()?;
        let fenced = self.open_fence()?;
        self.whitespace()?;
        self.value()?;
        self.whitespace()?;
        self.close_fence(fenced)
    }

    /// Prose before a fence is left out only if it cannot contain arguments as well.
    fn open_fence(&mut self) -> Result<bool, SyntaxError> {
        let rest = self.rest();
        if rest.starts_with(['{', '[', '"', '\'', '“', '‘']) {
            return Ok(false);
        }
        let fence = if rest.starts_with('`') && !rest.starts_with(FENCE) { "`" } else { FENCE };
        let Some(prose) = rest.find(fence) else { return Err(self.no_object()) };
        if has_brackets(&rest[..prose]) {
            return Err(self.error(
                "there are arguments outside the code fence as well; send only one object",
                "代码块之外也有参数；只需要一个对象",
            ));
        }
        let after = &rest[prose + fence.len()..];
        let language = after.len() - after.trim_start_matches(|c: char| c.is_alphanumeric() || "+-_".contains(c)).len();
        self.replace(RepairKind::CodeFence, prose + fence.len() + language, "")?;
        Ok(true)
    }

    fn close_fence(&mut self, fenced: bool) -> Result<(), SyntaxError> {
        let rest = self.rest();
        if rest.is_empty() {
            return Ok(());
        }
        let prose = rest.trim_start_matches('`');
        if prose.len() < rest.len() && !has_brackets(prose) && (fenced || prose.trim().is_empty()) {
            return self.replace(RepairKind::CodeFence, rest.len(), "");
        }
        Err(match self.peek() {
            Some(c @ ('}' | ']')) => self.error(
                format!("{c:?} closes nothing; perhaps an earlier bracket was closed too soon"),
                format!("{c:?} 没有与之对应的开头；可能前面有一个写早了"),
            ),
            _ => self.error(
                "more text follows the arguments; send only one object",
                "参数之后还有多余的文本；只需要一个对象",
            ),
        })
    }

    fn no_object(&self) -> SyntaxError {
        let start: String = self.rest().chars().take(20).collect();
        if start.is_empty() {
            return self.error(
                "there are only whitespace and comments; a JSON object is needed, at least {}",
                "只有空白和注释；需要一个 JSON 对象，至少是 {}",
            );
        }
        self.error(
            format!("a JSON object begins with '{{', not with {start:?}"),
            format!("JSON 对象以 '{{' 开头，而不是 {start:?}"),
        )
    }
}

fn has_brackets(text: &str) -> bool {
    text.contains(['{', '}', '[', ']', '`'])
}
