//! Where a JSON object or array in the middle of a text ends.

/// What counts as JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As the specification says, except that words are not checked.
    Strict,
    /// As models write it: with comments, trailing commas, words without quotes, single quotes, line breaks in strings.
    Loose,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
}

/// Returns the offset after the object or array with which the text begins; otherwise the offset up to which it was
/// read. One pass without recursion.
pub(crate) fn end(text: &str, style: Style) -> Result<usize, usize> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0, style };
    let mut open = Vec::new();
    let mut next = Next::Value;
    loop {
        scan.space()?;
        let byte = scan.peek()?;
        next = match (next, byte) {
            (Next::Value | Next::ValueOrEnd, b'{' | b'[') => {
                scan.at += 1;
                open.push(if byte == b'{' { b'}' } else { b']' });
                if byte == b'{' { Next::KeyOrEnd } else { Next::ValueOrEnd }
            }
            (Next::KeyOrEnd | Next::ValueOrEnd | Next::CommaOrEnd, b'}' | b']') => {
                if open.pop() != Some(byte) {
                    return Err(scan.at);
                }
                scan.at += 1;
                if open.is_empty() {
                    return Ok(scan.at);
                }
                Next::CommaOrEnd
            }
            // Only an object or an array may be at the top.
            _ if open.is_empty() => return Err(scan.at),
            (Next::Value | Next::ValueOrEnd, _) => {
                scan.string_or_word(style == Style::Loose || byte.is_ascii_alphanumeric() || byte == b'-')?;
                Next::CommaOrEnd
            }
            (Next::Key | Next::KeyOrEnd, _) => {
                scan.string_or_word(style == Style::Loose)?;
                Next::Colon
            }
            (Next::Colon, b':') => {
                scan.at += 1;
                Next::Value
            }
            (Next::CommaOrEnd, b',') => {
                scan.at += 1;
                match (open.last() == Some(&b'}'), style) {
                    (true, Style::Strict) => Next::Key,
                    (true, Style::Loose) => Next::KeyOrEnd,
                    (false, Style::Strict) => Next::Value,
                    (false, Style::Loose) => Next::ValueOrEnd,
                }
            }
            _ => return Err(scan.at),
        };
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    style: Style,
}

impl Scan<'_> {
    fn peek(&self) -> Result<u8, usize> {
        self.bytes.get(self.at).copied().ok_or(self.at)
    }

    /// Skips white space and comments.
    fn space(&mut self) -> Result<(), usize> {
        loop {
            let rest = &self.bytes[self.at..];
            let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.at += blank;
            let rest = &rest[blank..];
            let comment = self.style == Style::Loose && (rest.starts_with(b"//") || rest.starts_with(b"#"));
            if comment {
                self.at += rest.iter().take_while(|byte| **byte != b'\n').count();
            } else if self.style == Style::Loose && rest.starts_with(b"/*") {
                let close = rest.windows(2).skip(2).position(|two| two == b"*/");
                self.at += close.ok_or(self.bytes.len())? + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn string_or_word(&mut self, word: bool) -> Result<(), usize> {
        match self.peek()? {
            b'"' => self.string(b'"'),
            b'\'' if self.style == Style::Loose => self.string(b'\''),
            _ if word => self.word(),
            _ => Err(self.at),
        }
    }

    fn string(&mut self, quote: u8) -> Result<(), usize> {
        self.at += 1;
        loop {
            match self.peek()? {
                byte if byte == quote => break,
                b'\\' => self.at += 2,
                byte if byte < b' ' && self.style == Style::Strict => return Err(self.at),
                _ => self.at += 1,
            }
            self.at = self.at.min(self.bytes.len());
        }
        self.at += 1;
        Ok(())
    }

    /// Skips a number, `true` or another word.
    fn word(&mut self) -> Result<(), usize> {
        let of_word = |byte: &u8| match self.style {
            Style::Strict => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'),
            Style::Loose => {
                !byte.is_ascii_whitespace() && !matches!(byte, b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"' | b'\'')
            }
        };
        let length = self.bytes[self.at..].iter().take_while(|byte| of_word(byte)).count();
        self.at += length;
        if length == 0 { Err(self.at) } else { Ok(()) }
    }
}

/// Finds ends within one text and gives up when too much was read in vain, so that the time stays linear.
pub(crate) struct Search {
    /// Bytes that may still be read in vain.
    left: usize,
}

impl Search {
    pub(crate) const fn of(text: &str) -> Self {
        Self { left: text.len() * 8 + 1000 }
    }

    /// Returns the offset in `text` after the object or array that begins at `at`.
    pub(crate) fn end(&mut self, text: &str, at: usize, style: Style) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        match end(text.get(at..)?, style) {
            Ok(length) => Some(at + length),
            Err(read) => {
                self.left = self.left.saturating_sub(read);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_end_where_they_end() {
        for (text, strict, loose) in [
            (r#"{"a": [1, -2.5e3, true, {"b": "}\""}]} x"#, Some(38), Some(38)),
            ("{}}", Some(2), Some(2)),
            ("[]", Some(2), Some(2)),
            (r#"{"a": 1,}"#, None, Some(9)),
            ("{'a': 'it'}", None, Some(11)),
            ("{a: None, /* } */ b: [x,]} // c", None, Some(26)),
            ("{\"a\": 1 # }\n}", None, Some(13)),
            ("{\"a\": \"x\ny\"}", None, Some(12)),
            ("{\"a\": 1 // }", None, None),
            ("{\"a\": 1 /* }", None, None),
            (r#"{"a": "x"#, None, None),
            (r#"{"a": "x\"#, None, None),
            (r#"{"a" "b"}"#, None, None),
            (r#"{"a": 1]"#, None, None),
            (r#"{"a": "b" c}"#, None, None),
            ("{1</think>}", None, None),
            ("x", None, None),
            ("", None, None),
        ] {
            assert_eq!(end(text, Style::Strict).ok(), strict, "{text}");
            assert_eq!(end(text, Style::Loose).ok(), loose, "{text}");
        }
    }
}
