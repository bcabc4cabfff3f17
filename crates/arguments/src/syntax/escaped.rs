//! An object that was escaped as the content of a JSON string, but has lost its quotes: `{\"a\": \"b\"}`.

use super::{scan::Scan, string::escaped};

impl Scan<'_> {
    /// Writes such an object as the JSON string that it was, and moves behind it; false if there is none. The first key's
    /// quote is escaped, which no other reading allows, and every other quote must be as well.
    pub(super) fn escaped_object(&mut self) -> bool {
        let rest = self.rest();
        let Some(inside) = rest.strip_prefix('{') else { return false };
        if !after_whitespace(inside).starts_with("\\\"") {
            return false;
        }
        let Some(object) = rest.rfind('}').map(|end| &rest[..=end]) else { return false };
        // With a raw line break the text was not escaped as a whole, so that two backslashes have two readings.
        let has_controls = object.contains(|c: char| c < ' ');
        if has_controls && object.contains("\\\\") {
            return false;
        }
        let mut string = String::with_capacity(object.len() + 2);
        string.push('"');
        for c in object.chars() {
            if c < ' ' { string.push_str(&escaped(c)) } else { string.push(c) }
        }
        string.push('"');
        if serde_json::from_str::<String>(&string).is_err() {
            return false;
        }
        self.out.push_str(&string);
        self.at += object.len();
        true
    }
}

/// Returns the text after whitespace, which may be escaped, too.
fn after_whitespace(mut text: &str) -> &str {
    loop {
        let rest = text.trim_start_matches([' ', '\t', '\n', '\r']);
        let rest = ["\\n", "\\r", "\\t"].iter().find_map(|escape| rest.strip_prefix(escape)).unwrap_or(rest);
        if rest.len() == text.len() {
            return rest;
        }
        text = rest;
    }
}
