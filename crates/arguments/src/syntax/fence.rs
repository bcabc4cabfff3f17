//! The document around the arguments: whitespace, comments, and a Markdown code fence with prose outside it.

use redial_proto::{Advice, RepairKind};

use super::{
    error::SyntaxError,
    scan::Scan,
    surroundings::{Opening, has_thoughts},
};

const FENCE: &str = "```";

/// What the arguments stand in.
enum Around {
    Fence,
    Text(Opening),
}

impl Scan<'_> {
    /// Reads the whole text: one value, perhaps in a code fence or among words.
    pub(super) fn document(&mut self) -> Result<(), SyntaxError> {
        self.whitespace()?;
        let around = self.open_document()?;
        self.whitespace()?;
        let is_object = self.peek() == Some('{');
        if !self.escaped_object() {
            self.value()?;
        }
        self.whitespace()?;
        self.close_document(&around, is_object)
    }

    /// Opens the document. Prose is left out only if it cannot contain arguments as well.
    fn open_document(&mut self) -> Result<Around, SyntaxError> {
        let rest = self.rest();
        if rest.starts_with(['{', '[', '"', '\'', '“', '‘']) {
            return Ok(Around::Text(Opening::default()));
        }
        let fence = if rest.starts_with('`') && !rest.starts_with(FENCE) { "`" } else { FENCE };
        let Some(prose) = rest.find(fence) else { return self.open_text() };
        if has_brackets(&rest[..prose]) {
            if !rest[..prose].trim_end_matches([' ', '\t']).ends_with('\n') {
                // It may stand in a string of an object among words; a fence behind an object is more than words.
                return self.open_text();
            }
            return Err(self.error(
                "there are arguments outside the code fence as well; send only one object",
                "代码块之外也有参数；只需要一个对象",
            ));
        }
        if has_thoughts(&rest[..prose]) {
            return Err(self.error(
                "the code fence may stand in thoughts; send only the object",
                "代码块可能在思考内容之中；请只发送这个对象",
            ));
        }
        let after = rest[prose..].trim_start_matches('`');
        let language = after.trim_start_matches(|c: char| c.is_alphanumeric() || "+-_".contains(c));
        self.replace(RepairKind::CodeFence, rest.len() - language.len(), "")?;
        Ok(Around::Fence)
    }

    fn open_text(&mut self) -> Result<Around, SyntaxError> {
        let start = self.at;
        let opening = self.open_surroundings()?;
        if self.at == start { Err(self.no_object()) } else { Ok(Around::Text(opening)) }
    }

    fn close_document(&mut self, around: &Around, is_object: bool) -> Result<(), SyntaxError> {
        let rest = self.rest();
        if rest.is_empty() && !matches!(around, Around::Text(Opening { call: true })) {
            return Ok(());
        }
        let prose = rest.trim_start_matches('`');
        let is_fenced = matches!(around, Around::Fence);
        let no_text = matches!(around, Around::Text(opening) if *opening == Opening::default());
        let is_prose = !has_brackets(prose) && !has_thoughts(prose);
        if prose.len() < rest.len() && is_prose && (is_fenced || (no_text && prose.trim().is_empty())) {
            return self.replace(RepairKind::CodeFence, rest.len(), "");
        }
        if let Around::Text(opening) = around
            && is_object
            && self.close_surroundings(*opening)?
        {
            return Ok(());
        }
        Err(match self.peek() {
            None => self.error("a closing parenthesis is needed after the object", "对象之后需要右括号"),
            Some(c @ ('}' | ']')) => self.error(
                format!("{c:?} closes nothing; perhaps an earlier bracket was closed too soon"),
                format!("{c:?} 没有与之对应的开头；可能前面有一个写早了"),
            ),
            Some(_) => self.error(
                "more text follows the arguments; send only one object",
                "参数之后还有多余的文本；只需要一个对象",
            ),
        })
    }

    fn no_object(&self) -> SyntaxError {
        let rest = self.rest();
        let start: String = rest.chars().take(20).collect();
        if rest.contains('{') {
            return self.error(
                format!("{start:?} and what follows before the object may mean more than words; send only the object"),
                format!("对象之前的 {start:?} 等内容可能不只是文字说明；请只发送这个对象"),
            );
        }
        let error = if start.is_empty() {
            self.error(
                "there are only whitespace and comments; a JSON object is needed, at least {}",
                "只有空白和注释；需要一个 JSON 对象，至少是 {}",
            )
        } else {
            self.error(
                format!("a JSON object begins with '{{', not with {start:?}"),
                format!("JSON 对象以 '{{' 开头，而不是 {start:?}"),
            )
        };
        SyntaxError { advice: Advice::Form, ..error }
    }
}

fn has_brackets(text: &str) -> bool {
    text.contains(['{', '}', '[', ']', '`'])
}
