//! Whitespace, comments, keys, and values without quotes.

use redial_proto::RepairKind;

use super::{error::SyntaxError, scan::Scan};

/// Literals in capitals, with their JSON form. As keys they are plain names.
const CAPITALS: [(&str, &str); 4] = [("TRUE", "true"), ("FALSE", "false"), ("Null", "null"), ("NULL", "null")];

/// Literals of JSON and Python, with their JSON form.
const LITERALS: [(&str, &str); 6] =
    [("true", "true"), ("false", "false"), ("null", "null"), ("True", "true"), ("False", "false"), ("None", "null")];

impl Scan<'_> {
    /// Copies JSON whitespace; leaves out comments and other whitespace.
    pub(super) fn whitespace(&mut self) -> Result<(), SyntaxError> {
        loop {
            let rest = self.rest();
            let known = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.copy(known);
            let rest = &rest[known..];
            let unknown = rest.len() - rest.trim_start_matches(is_other_whitespace).len();
            if unknown > 0 {
                self.replace(RepairKind::Whitespace, unknown, "")?;
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else { return Err(self.endless_comment()) };
                self.replace(RepairKind::Comment, end + 2, "")?;
            } else if rest.starts_with("//") || rest.starts_with('#') {
                let end = rest.find('\n').unwrap_or(rest.len());
                self.last_comment = self.at..self.at + end;
                self.replace(RepairKind::Comment, end, "")?;
            } else if rest == "/" {
                return Err(self.cut_off());
            } else {
                return Ok(());
            }
        }
    }

    /// Reads a key, quoted or a plain identifier; returns it decoded.
    pub(super) fn key(&mut self) -> Result<String, SyntaxError> {
        let start = self.out.len();
        match self.peek() {
            Some('"' | '\'' | '“' | '‘') => {
                self.string()?;
                let decoded = serde_json::from_str(&self.out[start..]);
                decoded.map_err(|error| {
                    self.error(format!("this key cannot be read: {error}"), format!("无法读取的键（{error}）"))
                })
            }
            Some(c) if c.is_alphabetic() || c == '_' || c == '$' => self.identifier(),
            Some('\\') if self.rest().starts_with("\\\"") => Err(self.error(
                "this quote is escaped; write the object as plain JSON, without backslashes before its own quotes",
                "这个引号被转义了；请写成普通的 JSON 对象，对象自身的引号之前不要加反斜杠",
            )),
            Some(c) => Err(self.error(
                format!("a key in double quotes is needed, not {c:?}"),
                format!("需要一个带双引号的键，而不是 {c:?}"),
            )),
            None => Err(self.cut_off()),
        }
    }

    fn identifier(&mut self) -> Result<String, SyntaxError> {
        let name = word(self.rest()).to_owned();
        let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'));
        if !plain || LITERALS.iter().any(|(word, _)| *word == name) {
            return Err(self.error(
                format!("a key in double quotes is needed, not {name}"),
                format!("需要一个带双引号的键，而不是 {name}"),
            ));
        }
        if self.rest().len() == name.len() {
            return Err(self.cut_off());
        }
        self.replace(RepairKind::UnquotedKey, name.len(), &format!("\"{name}\""))?;
        Ok(name)
    }

    /// Reads a number, `true`, `false` or `null`; anything else without quotes is ambiguous.
    pub(super) fn bare_value(&mut self) -> Result<(), SyntaxError> {
        let word = word(self.rest());
        if self.rest().len() == word.len() && !word.is_empty() {
            self.at = self.text.len();
            return Err(self.cut_off());
        }
        if let Some((_, json)) = LITERALS.iter().find(|(known, _)| *known == word) {
            if word == *json {
                self.copy(word.len());
                return Ok(());
            }
            return self.replace(RepairKind::PythonLiteral, word.len(), json);
        }
        if let Some((_, json)) = CAPITALS.iter().find(|(known, _)| *known == word) {
            return self.replace(RepairKind::LiteralCase, word.len(), json);
        }
        match number(word) {
            Some(json) if json == word => {
                self.copy(word.len());
                Ok(())
            }
            Some(json) => self.replace(RepairKind::Number, word.len(), &json),
            None => Err(self.not_a_value(word)),
        }
    }

    fn not_a_value(&self, word: &str) -> SyntaxError {
        let shown: String = word.chars().take(40).collect();
        let mut digits = word.trim_start_matches(['-', '+']).bytes();
        match (digits.next(), digits.next()) {
            (Some(b'0'), Some(b'0'..=b'9')) => self.error(
                format!("{shown} begins with 0: numbers have no leading zeros, strings need double quotes"),
                format!("{shown} 以 0 开头：数字不能有前导零，文本需要双引号"),
            ),
            (Some(b'0'..=b'9' | b'.'), _) => self.error(
                format!("{shown} is not a number; strings need double quotes"),
                format!("{shown} 不是数字；文本需要双引号"),
            ),
            (Some(_), _) => self.error(
                format!("{shown} is not quoted; strings need double quotes"),
                format!("{shown} 没有引号；文本需要双引号"),
            ),
            (None, _) => match self.peek() {
                Some(c @ (',' | '，')) => {
                    self.error(format!("a value is needed before {c:?}"), format!("{c:?} 之前需要一个值"))
                }
                Some(c) => self.error(format!("a value is needed, not {c:?}"), format!("需要一个值，而不是 {c:?}")),
                None => self.cut_off(),
            },
        }
    }
}

/// Returns the characters up to the next one that can end a value or key.
fn word(text: &str) -> &str {
    let ends = |c: char| {
        c.is_whitespace()
            || is_other_whitespace(c)
            || matches!(c, ',' | ':' | '{' | '}' | '[' | ']' | '"' | '\'' | '/' | '#' | '`')
            || matches!(c, '，' | '：' | '“' | '”' | '‘' | '’')
    };
    &text[..text.find(ends).unwrap_or(text.len())]
}

/// Returns the word as a JSON number: unchanged, with a missing zero added, or with a plus sign removed.
fn number(word: &str) -> Option<String> {
    let (sign, rest) = match word.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    let zero = if rest.starts_with('.') { "0" } else { "" };
    let ends_with_point = rest.len() > 1 && rest.ends_with('.');
    let json = format!("{sign}{zero}{rest}{}", if ends_with_point { "0" } else { "" });
    let begins_right = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (begins_right && serde_json::from_str::<serde_json::Number>(&json).is_ok()).then_some(json)
}

/// True for Unicode whitespace that JSON does not allow, the byte order mark, and zero-width characters.
fn is_other_whitespace(c: char) -> bool {
    let json = matches!(c, ' ' | '\t' | '\n' | '\r');
    (c.is_whitespace() && !json) || matches!(c, '\u{feff}' | '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}')
}
