//! What stands between values, keys, and values without quotes.

use redial_proto::RepairKind;

use super::{fault::Fault, scan::Scan};

/// Words that are values, in JSON or in Python.
const WORDS: [(&str, &str); 6] =
    [("true", "true"), ("false", "false"), ("null", "null"), ("True", "true"), ("False", "false"), ("None", "null")];

impl Scan<'_> {
    /// Copies blanks; leaves out comments, and blanks that JSON does not know.
    pub(super) fn blanks(&mut self) -> Result<(), Fault> {
        loop {
            let rest = self.rest();
            let known = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.copy(known);
            let rest = &rest[known..];
            let unknown = rest.len() - rest.trim_start_matches(is_foreign_blank).len();
            if unknown > 0 {
                self.replace(RepairKind::Whitespace, unknown, "")?;
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else { return Err(self.cut_off()) };
                self.replace(RepairKind::Comment, end + 2, "")?;
            } else if rest.starts_with("//") || rest.starts_with('#') {
                let end = rest.find('\n').unwrap_or(rest.len());
                self.replace(RepairKind::Comment, end, "")?;
            } else if rest == "/" {
                return Err(self.cut_off());
            } else {
                return Ok(());
            }
        }
    }

    /// A key, quoted or a plain identifier; gives it decoded.
    pub(super) fn key(&mut self) -> Result<String, Fault> {
        let start = self.out.len();
        match self.peek() {
            Some('"' | '\'' | '“' | '‘') => {
                self.string()?;
                let decoded = serde_json::from_str(&self.out[start..]);
                decoded.map_err(|error| {
                    self.fault(format!("a key that cannot be read ({error})"), format!("无法读取的键（{error}）"))
                })
            }
            Some(c) if c.is_alphabetic() || c == '_' || c == '$' => self.identifier(),
            Some(c) => Err(self.fault(
                format!("a key in double quotes is needed, not {c:?}"),
                format!("需要一个带双引号的键，而不是 {c:?}"),
            )),
            None => Err(self.cut_off()),
        }
    }

    fn identifier(&mut self) -> Result<String, Fault> {
        let name = word(self.rest()).to_owned();
        let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'));
        if !plain || WORDS.iter().any(|(word, _)| *word == name) {
            return Err(self.fault(
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

    /// A number, `true`, `false` or `null`; everything else without quotes could mean several things.
    pub(super) fn bare_value(&mut self) -> Result<(), Fault> {
        let word = word(self.rest());
        if self.rest().len() == word.len() && !word.is_empty() {
            self.at = self.text.len();
            return Err(self.cut_off());
        }
        if let Some((_, json)) = WORDS.iter().find(|(known, _)| *known == word) {
            if word == *json {
                self.copy(word.len());
                return Ok(());
            }
            return self.replace(RepairKind::PythonLiteral, word.len(), json);
        }
        match number(word) {
            Some(json) if json == word => {
                self.copy(word.len());
                Ok(())
            }
            Some(json) => self.replace(RepairKind::Number, word.len(), &json),
            None => Err(self.no_value(word)),
        }
    }

    fn no_value(&self, word: &str) -> Fault {
        let shown: String = word.chars().take(40).collect();
        let mut digits = word.trim_start_matches(['-', '+']).bytes();
        match (digits.next(), digits.next()) {
            (Some(b'0'), Some(b'0'..=b'9')) => self.fault(
                format!("{shown} begins with 0: numbers have no leading zeros, texts need double quotes"),
                format!("{shown} 以 0 开头：数字不能有前导零，文本需要双引号"),
            ),
            (Some(b'0'..=b'9' | b'.'), _) => self.fault(
                format!("{shown} is no number; texts need double quotes"),
                format!("{shown} 不是数字；文本需要双引号"),
            ),
            (Some(_), _) => self.fault(
                format!("{shown} stands without quotes; texts need double quotes"),
                format!("{shown} 没有引号；文本需要双引号"),
            ),
            (None, _) => match self.peek() {
                Some(c @ (',' | '，')) => {
                    self.fault(format!("a value is needed before {c:?}"), format!("{c:?} 之前需要一个值"))
                }
                Some(c) => self.fault(format!("a value is needed, not {c:?}"), format!("需要一个值，而不是 {c:?}")),
                None => self.cut_off(),
            },
        }
    }
}

/// The characters up to the next one that can end a value or key.
fn word(text: &str) -> &str {
    let ends = |c: char| {
        c.is_whitespace()
            || is_foreign_blank(c)
            || matches!(c, ',' | ':' | '{' | '}' | '[' | ']' | '"' | '\'' | '/' | '#' | '`')
            || matches!(c, '，' | '：' | '“' | '”' | '‘' | '’')
    };
    &text[..text.find(ends).unwrap_or(text.len())]
}

/// The JSON number that a word stands for: as it is, or with a missing zero or a needless plus.
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

/// Blanks that Unicode knows and JSON does not, the byte order mark, and marks of no width.
fn is_foreign_blank(c: char) -> bool {
    let json = matches!(c, ' ' | '\t' | '\n' | '\r');
    (c.is_whitespace() && !json) || matches!(c, '\u{feff}' | '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}')
}
