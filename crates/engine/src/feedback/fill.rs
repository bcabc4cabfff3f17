//! Texts with their placeholders filled in, and the user's own ones checked.

use std::collections::BTreeMap;

use super::{
    Words,
    texts::{self, PLACEHOLDERS},
};

/// Longest text that a user may give, in bytes.
const MAX_BYTES: usize = 8 * 1024;

/// What placeholders stand for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values<'a> {
    pub(super) tool: Option<&'a str>,
    pub(super) class: Option<&'a str>,
    pub(super) message: Option<&'a str>,
    pub(super) corrections_left: Option<u32>,
    pub(super) times: Option<u32>,
    pub(super) other: Option<&'a str>,
    pub(super) problem: Option<&'a str>,
    pub(super) reason: Option<&'a str>,
    pub(super) code: Option<&'a str>,
    pub(super) wrong: Option<&'a str>,
    pub(super) limit: Option<&'a str>,
    pub(super) over: Option<&'a str>,
    pub(super) ending: Option<&'a str>,
}

impl Values<'_> {
    /// Returns the value of a placeholder; `None` for a name that is none, or that has no value here.
    fn get(&self, name: &str) -> Option<String> {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let text = match name {
            "tool" => self.tool,
            "class" => self.class,
            "message" => self.message,
            "other" => self.other,
            "problem" => self.problem,
            "reason" => self.reason,
            "code" => self.code,
            "wrong" => self.wrong,
            "limit" => self.limit,
            "over" => self.over,
            "ending" => self.ending,
            "corrections_left" => return number(self.corrections_left),
            "times" => return number(self.times),
            _ => None,
        };
        text.map(str::to_owned)
    }
}

impl Words<'_> {
    /// Fills in the text of a key, the user's or ours.
    pub(super) fn say(&self, key: &str, values: &Values<'_>) -> String {
        let own = self.templates.get(key).map(String::as_str);
        fill(own.unwrap_or_else(|| texts::text(key, self.language)), values)
    }
}

/// Fills values in once, from left to right: brackets in a value are only text. Unknown placeholders stay.
fn fill(template: &str, values: &Values<'_>) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        let longest = PLACEHOLDERS.iter().map(|name| name.len()).max().unwrap_or_default();
        let close = rest.bytes().take(longest + 2).position(|byte| byte == b'}');
        let value = close.and_then(|close| Some((values.get(rest.get(1..close)?)?, close)));
        let (value, close) = value.unwrap_or_else(|| ("{".to_owned(), 0));
        filled.push_str(&value);
        rest = &rest[close + 1..];
    }
    filled.push_str(rest);
    filled
}

/// Says which of an agent's own texts has an unknown key or no usable text, and which keys there are.
pub fn check_templates(templates: &BTreeMap<String, String>) -> Result<(), String> {
    for (key, text) in templates {
        if !texts::all().any(|known| known.key == key) {
            let mut keys: Vec<&str> = texts::all().map(|text| text.key).collect();
            keys.sort_unstable();
            return Err(format!("templates: no text has the key {key:?}; allowed: {}", keys.join(", ")));
        }
        if text.trim().is_empty() {
            return Err(format!("templates: {key:?} is empty; a text is needed"));
        }
        if text.len() > MAX_BYTES {
            return Err(format!("templates: {key:?} takes {} bytes; allowed: {MAX_BYTES}", text.len()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in_once() {
        let values = Values { tool: Some("{message}"), message: Some("no"), times: Some(3), ..Values::default() };
        for (template, text) in [
            ("{tool}: {message}", "{message}: no"),
            ("{times}× {other} {nonsense} {", "3× {other} {nonsense} {"),
            ("{{tool}} {too} {tool", "{{message}} {too} {tool"),
            ("{\"a\": \"{message}\"}", "{\"a\": \"no\"}"),
            ("{好} {corrections_left}", "{好} {corrections_left}"),
        ] {
            assert_eq!(fill(template, &values), text);
        }
    }
}
