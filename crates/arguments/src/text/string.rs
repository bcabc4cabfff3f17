//! Strings: quotes, control characters, backslashes.

use redial_proto::RepairKind;

use super::{fault::Fault, scan::Scan};
use crate::words::pick;

/// What was seen in one string.
#[derive(Default)]
struct Seen {
    /// A control character was written as an escape.
    control: bool,
    /// Where the first backslash stands that escapes nothing.
    literal: Option<usize>,
    /// Where the first escape stands that reads otherwise if its backslash is meant literally.
    escape: Option<usize>,
    /// A `\u` escape, which may be half a character.
    unicode: bool,
}

impl Scan<'_> {
    /// A string in whatever quotes.
    pub(super) fn string(&mut self) -> Result<(), Fault> {
        let (start, written) = (self.at, self.out.len());
        let Some(open) = self.peek() else { return Err(self.cut_off()) };
        let close = match open {
            '“' => '”',
            '‘' => '’',
            same => same,
        };
        self.at += open.len_utf8();
        self.out.push('"');
        let mut seen = Seen::default();
        while self.rest_of_string(close, start, &mut seen)? {}
        self.at += close.len_utf8();
        self.out.push('"');
        self.check_escapes(written, start, &seen)?;
        let text = self.text;
        let (before, after) = (&text[start..self.at], self.out[written..].to_owned());
        for (kind, made) in [
            (RepairKind::Quotes, open != '"'),
            (RepairKind::ControlCharacter, seen.control),
            (RepairKind::Backslash, seen.literal.is_some()),
        ] {
            if made {
                self.record(kind, start, before, &after)?;
            }
        }
        Ok(())
    }

    /// Reads up to the next special character and that one; false at the closing quote.
    fn rest_of_string(&mut self, close: char, start: usize, seen: &mut Seen) -> Result<bool, Fault> {
        let special = |c: char| c < ' ' || matches!(c, '"' | '\\' | '\'' | '“' | '‘') || c == close;
        let rest = self.rest();
        let plain = rest.find(special).unwrap_or(rest.len());
        self.copy(plain);
        match self.peek() {
            None => return Err(self.string_without_end(start)),
            Some(c) if c == close => return Ok(false),
            Some('\\') => self.backslash(close, start, seen)?,
            // With these quotes nobody can tell which one ends the text.
            Some(c @ ('"' | '“')) if close == '”' => return Err(self.mixed_quotes(c)),
            Some(c @ ('\'' | '‘')) if close == '’' => return Err(self.mixed_quotes(c)),
            Some('"') => {
                self.out.push_str("\\\"");
                self.at += 1;
            }
            Some(c) if c < ' ' => {
                self.out.push_str(&escaped(c));
                self.at += 1;
                seen.control = true;
            }
            Some(c) => self.copy(c.len_utf8()),
        }
        Ok(true)
    }

    /// A backslash and, if they belong together, what follows it.
    fn backslash(&mut self, close: char, start: usize, seen: &mut Seen) -> Result<(), Fault> {
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
                seen.escape.get_or_insert(at);
            }
            Some('u') if hex(&after[1..]) >= 4 => {
                self.copy(6);
                seen.escape.get_or_insert(at);
                seen.unicode = true;
            }
            Some('u' | 'x' | 'U') if after.len() == 1 + hex(&after[1..]) => return Err(self.string_without_end(start)),
            // Escapes of other languages: what they mean depends on the language.
            Some(c @ ('\'' | '0')) => return Err(self.foreign_escape(c)),
            Some(c @ ('u' | 'x')) if hex(&after[1..]) > 0 => return Err(self.foreign_escape(c)),
            Some(c @ 'U') if hex(&after[1..]) >= 8 => return Err(self.foreign_escape(c)),
            Some(_) => {
                self.out.push_str("\\\\");
                self.at += 1;
                seen.literal.get_or_insert(at);
            }
        }
        Ok(())
    }

    /// In `"C:\Program Files\new"` the first backslash is a backslash; then the second one is no line break for sure.
    fn check_escapes(&self, written: usize, start: usize, seen: &Seen) -> Result<(), Fault> {
        if let (Some(literal), Some(escape)) = (seen.literal, seen.escape) {
            let two = |at: usize| self.text[at..].chars().take(2).collect::<String>();
            let (nothing, something) = (two(literal), two(escape));
            let fault = self.fault(
                format!(
                    "the backslash of {nothing} escapes nothing, that of {something} does: write every backslash that \
                     is meant as one as \\\\"
                ),
                format!("{nothing} 中的反斜杠不是转义，而 {something} 中的是转义：每个表示自身的反斜杠都应写作 \\\\"),
            );
            return Err(Fault { offset: literal, ..fault });
        }
        if seen.unicode && serde_json::from_str::<String>(&self.out[written..]).is_err() {
            let fault =
                self.fault("a \\u escape is only half of a character in the text", "文本中的 \\u 转义只是半个字符");
            return Err(Fault { offset: start, ..fault });
        }
        Ok(())
    }

    fn string_without_end(&self, start: usize) -> Fault {
        let begin = super::fault::place(self.text, start, self.language);
        let what = pick(
            self.language,
            format!("the text that begins at {begin} has no closing quote"),
            format!("从{begin}开始的文本没有右引号"),
        );
        Fault { what, ..self.cut_off() }
    }

    fn mixed_quotes(&self, quote: char) -> Fault {
        self.fault(
            format!("{quote} inside of curly quotes; texts need plain double quotes"),
            format!("弯引号之内出现了 {quote}；文本需要用普通的双引号"),
        )
    }

    fn foreign_escape(&self, c: char) -> Fault {
        self.fault(
            format!("\\{c} is no escape of JSON; a backslash is written \\\\, a character as it is"),
            format!("\\{c} 不是 JSON 的转义；反斜杠写作 \\\\，字符直接书写"),
        )
    }
}

fn escaped(c: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c => format!("\\u{:04x}", u32::from(c)),
    }
}
