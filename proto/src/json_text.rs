//! Formats JSON, and takes it apart, without parsing its values. Records keep JSON as it was sent, and it may contain numbers and strings that
//! JSON libraries reject.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Spaces of one level.
const INDENT: usize = 2;

/// Valid JSON over several lines.
pub fn indented(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let (mut depth, mut before) = (0_usize, "");
    for token in tokens(json) {
        let new_line = if closes(token) {
            depth = depth.saturating_sub(1);
            !opens(before)
        } else {
            opens(before) || before == ","
        };
        if new_line {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', depth * INDENT));
        }
        push(&mut text, token);
        if token == ":" {
            text.push(' ');
        }
        depth += usize::from(opens(token));
        before = token;
    }
    text
}

/// Valid JSON on one line.
pub fn one_line(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for token in tokens(json) {
        push(&mut text, token);
        if matches!(token, "," | ":") {
            text.push(' ');
        }
    }
    text
}

fn opens(token: &str) -> bool {
    matches!(token, "{" | "[")
}

fn closes(token: &str) -> bool {
    matches!(token, "}" | "]")
}

/// Brackets, commas, colons, whole strings, numbers and words.
pub fn tokens(json: &str) -> impl Iterator<Item = &str> {
    let mut rest = json;
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let first = rest.chars().next()?;
        let end = match first {
            '"' => string_end(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find(|c: char| "{}[],:\"".contains(c) || c.is_ascii_whitespace()).unwrap_or(rest.len()),
        };
        let (token, tail) = rest.split_at(end);
        rest = tail;
        Some(token)
    })
}

/// The index after the quote that ends the string at the start of this text.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Escapes control characters: JSON strings may contain those from U+007F on, and a terminal would obey them.
fn push(text: &mut String, token: &str) {
    for c in token.chars() {
        if c.is_control() {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
}

/// The members of an object in their order, with the text of their values; equal names too.
#[derive(Debug, Default)]
pub struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Read)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_layout_is_the_usual_one() {
        let value = json!({
            "a": [1, -2.5e3, null, true], "none": {}, "empty": [], "of": [[], {}, [[1]]], "text": "{\"[,:\\\" 订",
            "last": {"deep": {"er": "x y"}}
        });
        assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(serde_json::from_str::<Value>(&one_line(&value.to_string())).unwrap(), value);
        assert_eq!(one_line("[ 1,\n{\"a\" :2} ]"), r#"[1, {"a": 2}]"#);
    }

    #[test]
    fn values_that_libraries_reject_stay_unchanged() {
        let raw = r#"{"a":1e400000,"a":"\u0000\ud800","n":123456789012345678901234567890.10}"#;
        assert_eq!(
            indented(raw),
            "{\n  \"a\": 1e400000,\n  \"a\": \"\\u0000\\ud800\",\n  \"n\": 123456789012345678901234567890.10\n}"
        );
        assert_eq!(indented("  \"x\" "), "\"x\"");
    }

    #[test]
    fn control_characters_are_written_as_escapes() {
        assert_eq!(indented("\"\u{9b}31m\u{7f}\""), r#""\u009b31m\u007f""#);
    }
}
