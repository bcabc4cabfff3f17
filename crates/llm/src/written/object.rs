//! A call as a JSON object, under any of the keys that models and prompts use.

use std::sync::LazyLock;

use redial_proto::{ReplyCall, json_text::Members};
use regex::Regex;

use crate::{
    json::extent::{self, Style},
    offers::Offers,
};

/// Keys of the tool's name.
const NAMES: [&str; 5] = ["name", "tool", "tool_name", "action", "function"];
/// Keys of the arguments.
const ARGUMENTS: [&str; 6] = ["arguments", "parameters", "args", "input", "action_input", "tool_input"];
/// Keys that say nothing about the call.
const NEUTRAL: [&str; 4] = ["type", "id", "index", "call_id"];

/// What an object says about a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The tool's name as written.
    pub(crate) name: String,
    /// The arguments as written; a JSON string is unwrapped.
    pub(crate) arguments: Option<String>,
    /// The object has other keys as well.
    pub(crate) has_more: bool,
}

/// Reads an object with exactly one name and at most one value for the arguments; `None` for any other text.
pub(crate) fn read(text: &str) -> Option<Found> {
    let Members(pairs) = serde_json::from_str(text).ok()?;
    let of = |keys: &[&str]| -> Option<Option<&str>> {
        let mut values = pairs.iter().filter(|(key, _)| keys.contains(&key.as_str())).map(|(_, value)| value.get());
        let first = values.next();
        values.next().is_none().then_some(first)
    };
    let name = of(&NAMES)??;
    let arguments = of(&ARGUMENTS)?;
    let known = |key: &str| NAMES.contains(&key) || ARGUMENTS.contains(&key) || NEUTRAL.contains(&key);
    let has_more = pairs.iter().any(|(key, _)| !known(key));
    if name.starts_with('{') {
        // OpenAI's own form: {"type": "function", "function": {"name": …, "arguments": …}}.
        let inner = read(name).filter(|_| arguments.is_none() && !name.contains("\"function\""))?;
        return Some(Found { has_more: has_more || inner.has_more, ..inner });
    }
    let name: String = serde_json::from_str(name).ok()?;
    let text = |value: &str| serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned());
    Some(Found { name, arguments: arguments.filter(|value| *value != "null").map(text), has_more })
}

/// A call of an offered tool that was found in a text.
pub(crate) struct Damaged {
    pub(crate) call: ReplyCall,
    /// The offset after it.
    pub(crate) end: usize,
}

/// Reads a call of an offered tool in an object that is no JSON. If the object has an end, its arguments are the text
/// between their key and the bracket that closes the object. Otherwise the arguments are a text with too few or too
/// many brackets, which no reader takes for arguments.
pub(crate) fn damaged(text: &str, offers: &Offers) -> Option<Damaged> {
    let begin = text.find('{')?;
    let object = text[begin..].trim_end();
    let name = NAME.captures(object)?;
    let (whole, name) = (name.get(0)?, name.get(1)?.as_str());
    let key = KEY.find(object);
    if !offers.has(name) || key.is_some_and(|key| key.start() < whole.start()) {
        return None;
    }
    let end = extent::end(object, Style::Loose).ok();
    let arguments = match (key.map(|key| key.end()), end) {
        (None, _) => "",
        (Some(key), Some(end)) => object.get(key..end - 1)?,
        (Some(key), None) => {
            let missing = object.matches('{').count() > object.matches('}').count();
            object[key..].strip_suffix('}').unwrap_or(if missing { object } else { &object[key..] })
        }
    };
    let call = ReplyCall { name: offers.own(name), arguments: arguments.trim().to_owned() };
    Some(Damaged { call, end: end.map_or(text.len(), |end| begin + end) })
}

/// True if the first key of an object is one that a call begins with.
pub(crate) fn begins_like_a_call(text: &str) -> bool {
    let key = text.trim_start_matches(['{', ' ', '\t', '\r', '\n', '"', '\'']);
    NAMES.iter().chain(&NEUTRAL).any(|known| key.starts_with(known)) && KEY.is_match(text)
}

static NAME: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"["']?\b(?:name|tool|tool_name|action|function)["']?\s*:\s*["']([^"'\n]{1,200})["']"#));
static KEY: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"["']?\b(?:arguments|parameters|args|input|action_input|tool_input)["']?\s*:\s*"#));

#[expect(clippy::expect_used, reason = "the patterns are constants, and tests use each of them")]
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a valid pattern")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Wanted<'a> = Option<(&'a str, Option<&'a str>, bool)>;

    #[test]
    fn every_form_is_read_and_two_readings_are_none() {
        for (text, wanted) in [
            (r#"{"name": "f", "arguments": {"a": 1.50}}"#, Some(("f", Some(r#"{"a": 1.50}"#), false))),
            (r#"{"name": "f", "arguments": "{\"a\": 1}"}"#, Some(("f", Some(r#"{"a": 1}"#), false))),
            (r#"{"type": "function", "name": "f", "parameters": {}}"#, Some(("f", Some("{}"), false))),
            (r#"{"id": "a", "function": {"name": "f", "arguments": {}}}"#, Some(("f", Some("{}"), false))),
            (r#"{"function": "f", "args": {}}"#, Some(("f", Some("{}"), false))),
            (r#"{"action": "f", "action_input": "x"}"#, Some(("f", Some("x"), false))),
            (r#"{"name": "f"}"#, Some(("f", None, false))),
            (r#"{"name": "f", "arguments": null}"#, Some(("f", None, false))),
            (r#"{"name": "f", "arguments": {}, "why": 1}"#, Some(("f", Some("{}"), true))),
            (r#"{"name": "f", "name": "g", "arguments": {}}"#, None),
            (r#"{"name": "f", "arguments": {}, "parameters": {}}"#, None),
            (r#"{"name": 1, "arguments": {}}"#, None),
            (r#"{"arguments": {}}"#, None),
            (r#"[{"name": "f"}]"#, None),
            (r#"{"function": {"function": {"name": "f"}}}"#, None),
        ] {
            let found = read(text);
            let found: Wanted<'_> =
                found.as_ref().map(|found| (found.name.as_str(), found.arguments.as_deref(), found.has_more));
            assert_eq!(found, wanted, "{text}");
        }
    }
}
