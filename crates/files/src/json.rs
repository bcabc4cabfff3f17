//! What is wrong with a text that should be JSON.

use std::fmt;

use crate::{
    position::{Position, position_of},
    words,
};

/// Characters of a text that a message quotes.
const QUOTED: usize = 24;

/// A mistake in JSON, in the terms of the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonMistake {
    /// Where reading stopped; `None` if the whole text has another form.
    pub position: Option<Position>,
    /// What was found, and what is expected there.
    pub message: String,
}

impl fmt::Display for JsonMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line: 1, column }) => write!(f, "column {column}: {}", self.message),
            Some(Position { line, column }) => write!(f, "line {line}, column {column}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Explains why a reader refused this text.
pub fn json_mistake(text: &str, error: &serde_json::Error) -> JsonMistake {
    let technical = error.to_string();
    let technical = technical.rsplit_once(" at line ").map_or(technical.as_str(), |(message, _)| message);
    if text.trim().is_empty() {
        return JsonMistake {
            position: None,
            message: "the text is empty; expected JSON such as {\"city\": \"Paris\"}".into(),
        };
    }
    let at = byte_of(text, error.line(), error.column());
    let message = match words::data_message(technical) {
        Some(message) => message,
        None => syntax(technical, text, at),
    };
    let whole = technical.starts_with("missing field");
    let position = (error.line() > 0 && !whole).then(|| position_of(text, at));
    JsonMistake { position, message }
}

/// Returns the byte that a reader complains about. It counts columns in bytes, from 1, and sometimes names the byte
/// before a line.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    text.floor_char_boundary((start + column.saturating_sub(1)).min(text.len()))
}

fn syntax(technical: &str, text: &str, at: usize) -> String {
    let found = found(text, at);
    match technical {
        "EOF while parsing a string" => "the text ends inside a string; expected a closing double quote".to_owned(),
        "EOF while parsing an object" => "the text ends inside an object; expected a closing }".to_owned(),
        "EOF while parsing a list" => "the text ends inside a list; expected a closing ]".to_owned(),
        "EOF while parsing a value" => "the text ends where a value is expected".to_owned(),
        "expected value" | "expected ident" => format!("found {found}; expected a value{}", quotes(text, at)),
        "expected `:`" => format!("found {found}; expected a colon after the name"),
        "expected `,` or `}`" => format!("found {found}; expected a comma or }}"),
        "expected `,` or `]`" => format!("found {found}; expected a comma or ]"),
        "key must be a string" => format!("found {found}; expected a name in double quotes{}", quotes(text, at)),
        "trailing comma" => format!("found {found} after a comma; expected another entry, or no comma"),
        "trailing characters" => format!("found {found} after the end of the JSON; expected nothing more"),
        "invalid escape" => {
            "found an unknown escape; expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX".to_owned()
        }
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "found a line break or another control character inside a string; expected \\n, \\t or \\uXXXX".to_owned()
        }
        "invalid number" => format!("found {found}; expected a number such as 3, -0.5 or 1e9"),
        "number out of range" => "found a number that is too large".to_owned(),
        "recursion limit exceeded" => "the values are nested too deeply; allowed: 127 levels".to_owned(),
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "found half of a character; expected \\uXXXX\\uXXXX for characters beyond \\uFFFF".to_owned()
        }
        other => format!("{} ({})", other.replace('`', "\""), found),
    }
}

/// Names what is at a byte: one symbol, or a word.
fn found(text: &str, at: usize) -> String {
    let rest = text[at..].trim_start();
    match rest.chars().next() {
        None => "the end of the text".to_owned(),
        Some(first) if first.is_alphanumeric() || first == '-' => {
            let word = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.');
            let whole: String = rest.chars().take_while(word).take(QUOTED).collect();
            format!("{whole:?}")
        }
        Some('"') => "a double quote".to_owned(),
        Some('\u{feff}') => "a byte order mark (U+FEFF)".to_owned(),
        Some(symbol) => format!("{:?}", symbol.to_string()),
    }
}

/// Explains missing quotes: a shell takes double quotes away unless single ones are around them.
fn quotes(text: &str, at: usize) -> &'static str {
    match text[at..].trim_start().chars().next() {
        Some('\'') => "; JSON has double quotes only",
        Some('N' | 'T' | 'F')
            if ["None", "True", "False"].iter().any(|word| text[at..].trim_start().starts_with(word)) =>
        {
            "; JSON has null, true and false"
        }
        Some(first) if first.is_alphabetic() && !text.contains('"') => {
            "; texts and names need double quotes (on a command line, put single quotes around the whole JSON)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    fn of(text: &str) -> String {
        json_mistake(text, &serde_json::from_str::<Box<RawValue>>(text).unwrap_err()).to_string()
    }

    #[test]
    fn syntax_is_explained() {
        let texts = [
            "",
            " \n",
            "{\"a\": }",
            "{a: 1}",
            "{city: Paris}",
            "{'a': 1}",
            "{\"a\" 1}",
            "{\"a\": 1 \"b\": 2}",
            "{\"a\": 1,}",
            "[1, 2,]",
            "[1 2]",
            "{\"a\": 1} x",
            "{\"a\": \"b",
            "{\"a\": 1",
            "[1",
            "{\"a\":",
            "{\"a\": \"x\ny\"}",
            "{\"a\": \"\\q\"}",
            "{\"a\": 01}",
            "{\"a\": -}",
            "{\"a\": None}",
            "{\n  \"好\": 1,\n  \"b\": tru\n}",
            "Paris",
            "\u{feff}{}",
        ];
        insta::assert_snapshot!(texts.map(|text| format!("{text:?}\n    {}", of(text))).join("\n"));
    }

    #[test]
    fn wrong_types_are_explained() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only its reader is used")]
        struct Call {
            tool: String,
            attempts: Option<u32>,
        }
        let texts =
            ["{}", "[1]", "{\"tool\": 3}", "{\"tool\": \"a\", \"attemps\": 1}", "{\"tool\": \"a\",\n\"attempts\": -1}"];
        let explain = |text: &str| json_mistake(text, &serde_json::from_str::<Call>(text).unwrap_err()).to_string();
        insta::assert_snapshot!(texts.map(|text| format!("{text:?}\n    {}", explain(text))).join("\n"));
    }

    #[test]
    fn deep_nesting_and_long_words_are_bounded() {
        let deep = "[".repeat(1000);
        let error = serde_json::from_str::<serde_json::Value>(&deep).unwrap_err();
        assert!(json_mistake(&deep, &error).message.contains("127 levels"));
        assert!(of(&"x".repeat(10_000)).len() < 250);
    }
}
