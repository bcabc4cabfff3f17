//! Strings: quotes, control characters, backslashes.

use redial_proto::RepairKind;

use super::{error::SyntaxError, scan::Scan};
use crate::language::pick;

/// What one string contains.
#[derive(Default)]
struct Contents {
    /// A control character was written as an escape.
    control: bool,
    /// Offset of the first backslash that escapes nothing.
    literal: Option<usize>,
    /// Offset of the first escape that would mean something else if its backslash were literal.
    escape: Option<usize>,
    /// The string has a `\u` escape, which may be half of a character.
    unicode: bool,
}

impl Scan<'_> {
    /// Reads a string in any kind of quotes.
    pub(super) fn string(&mut self) -> Result<(), SyntaxError> {
        let (start, written) = (self.at, self.out.len());
        let Some(open) = self.peek() else { return Err(self.cut_off()) };
        let close = match open {
            '“' => '”',
            '‘' => '’',
            same => same,
        };
        self.at += open.len_utf8();
        self.out.push('"');
        let mut contents = Contents::default();
        while self.rest_of_string(close, start, &mut contents)? {}
        self.at += close.len_utf8();
        self.out.push('"');
        self.check_escapes(written, start, &contents)?;
        let text = self.text;
        let (before, after) = (&text[start..self.at], self.out[written..].to_owned());
        for (kind, made) in [
            (RepairKind::Quotes, open != '"'),
            (RepairKind::ControlCharacter, contents.control),
            (RepairKind::Backslash, contents.literal.is_some()),
        ] {
            if made {
                self.record(kind, start, before, &after)?;
            }
        }
        Ok(())
    }

    /// Reads up to and including the next special character; false at the closing quote.
    fn rest_of_string(&mut self, close: char, start: usize, contents: &mut Contents) -> Result<bool, SyntaxError> {
        let special = |c: char| c < ' ' || matches!(c, '"' | '\\' | '\'' | '“' | '‘') || c == close;
        let rest = self.rest();
        let plain = rest.find(special).unwrap_or(rest.len());
        self.copy(plain);
        match self.peek() {
            None => return Err(self.string_without_end(start)),
            Some(c) if c == close => return Ok(false),
            Some('\\') => self.backslash(close, start, contents)?,
            // With mixed quotes it is ambiguous which one ends the string.
            Some(c @ ('"' | '“')) if close == '”' => return Err(self.mixed_quotes(c)),
            Some(c @ ('\'' | '‘')) if close == '’' => return Err(self.mixed_quotes(c)),
            Some('"') => {
                self.out.push_str("\\\"");
                self.at += 1;
            }
            Some(c) if c < ' ' => {
                self.out.push_str(&escaped(c));
                self.at += 1;
                contents.control = true;
            }
            Some(c) => self.copy(c.len_utf8()),
        }
        Ok(true)
    }

    /// Reads a backslash and the rest of its escape, if it is one.
    fn backslash(&mut self, close: char, start: usize, contents: &mut Contents) -> Result<(), SyntaxError> {
        let at = self.at;
        let after = &self.rest()[1..];
        let hex = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
        match after.chars().next() {
            None => return Err(self.string_without_end(start)),
            Some('"') => self.copy(2),
            Some('\'') if close == '\'' => {
                self.out.push('\'');
                self.at += 2;
            }
            Some('\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                self.copy(2);
                contents.escape.get_or_insert(at);
            }
            Some('u') if hex(&after[1..]) >= 4 => {
                self.copy(6);
                contents.escape.get_or_insert(at);
                contents.unicode = true;
            }
            Some('u' | 'x' | 'U') if after.len() == 1 + hex(&after[1..]) => return Err(self.string_without_end(start)),
            // The meaning of these escapes of other languages depends on the language.
            Some(c @ ('\'' | '0')) => return Err(self.foreign_escape(c)),
            Some(c @ ('u' | 'x')) if hex(&after[1..]) > 0 => return Err(self.foreign_escape(c)),
            Some(c @ 'U') if hex(&after[1..]) >= 8 => return Err(self.foreign_escape(c)),
            Some(_) => {
                self.out.push_str("\\\\");
                self.at += 1;
                contents.literal.get_or_insert(at);
            }
        }
        Ok(())
    }

    /// Refuses an ambiguous escape: in `"C:\Program Files\new"` the first backslash is literal, so the second one may
    /// not be a line break either.
    fn check_escapes(&self, written: usize, start: usize, contents: &Contents) -> Result<(), SyntaxError> {
        if let (Some(literal), Some(escape)) = (contents.literal, contents.escape) {
            let two = |at: usize| self.text[at..].chars().take(2).collect::<String>();
            let (nothing, something) = (two(literal), two(escape));
            let error = self.error(
                format!(
                    "the backslash in {nothing} escapes nothing, but the one in {something} does: write every literal \
                     backslash as \\\\"
                ),
                format!("{nothing} 中的反斜杠不是转义，而 {something} 中的是转义：每个表示自身的反斜杠都应写作 \\\\"),
            );
            return Err(SyntaxError { offset: literal, ..error });
        }
        if contents.unicode && serde_json::from_str::<String>(&self.out[written..]).is_err() {
            let error =
                self.error("a \\u escape in this string is only half of a character", "文本中的 \\u 转义只是半个字符");
            return Err(SyntaxError { offset: start, ..error });
        }
        Ok(())
    }

    fn string_without_end(&self, start: usize) -> SyntaxError {
        let begin = super::error::position(self.text, start, self.language);
        let what = pick(
            self.language,
            format!("the string that begins at {begin} has no closing quote"),
            format!("从{begin}开始的文本没有右引号"),
        );
        if !self.text.trim_end().ends_with('}') {
            return SyntaxError { what, ..self.cut_off() };
        }
        // It looks as if the quote were missing, and not the rest of the text.
        let error = self.error(
            "the string that begins here has no closing quote, or the text is cut off",
            "从这里开始的文本没有右引号，或者内容被截断了",
        );
        SyntaxError { offset: start, ..error }
    }

    fn mixed_quotes(&self, quote: char) -> SyntaxError {
        self.error(
            format!("{quote} appears inside curly quotes; strings need plain double quotes"),
            format!("弯引号之内出现了 {quote}；文本需要用普通的双引号"),
        )
    }

    fn foreign_escape(&self, c: char) -> SyntaxError {
        self.error(
            format!("\\{c} is not a JSON escape; write a backslash as \\\\, and other characters without one"),
            format!("\\{c} 不是 JSON 的转义；反斜杠写作 \\\\，字符直接书写"),
        )
    }
}

/// Writes the escape of a control character.
pub(super) fn escaped(c: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c => format!("\\u{:04x}", u32::from(c)),
    }
}
