//! An action and its input → a call.

use std::collections::HashMap;

use redial_proto::ReplyCall;
use serde_json::value::RawValue;

use super::parse::Block;

/// How models write that they want no tool.
const NOTHING: [&str; 6] = ["none", "n/a", "null", "无", "没有", "不需要"];

/// The call; none if the action says that there is none. Without an input its arguments are empty.
pub(super) fn read(action: &Block<'_>, input: Option<&Block<'_>>) -> Option<ReplyCall> {
    let text = action.text();
    if let Some(call) = in_json(&text) {
        return Some(call);
    }
    let (line, more) = text.split_once('\n').unwrap_or((&text, ""));
    let name = bare(line);
    if NOTHING.iter().any(|nothing| name.eq_ignore_ascii_case(nothing)) || (name.is_empty() && input.is_none()) {
        return None;
    }
    let input = input.map_or_else(|| more.to_owned(), Block::text);
    if let Some((name, inside)) = in_brackets(name).filter(|_| input.trim().is_empty()) {
        return Some(ReplyCall { name: bare(name).to_owned(), arguments: inside.to_owned() });
    }
    Some(ReplyCall { name: name.trim_end_matches("()").to_owned(), arguments: arguments(&input) })
}

/// A name without quotes, brackets and markers around it.
fn bare(line: &str) -> &str {
    let around =
        |c: char| c.is_whitespace() || matches!(c, '*' | '`' | '"' | '\'' | '[' | ']' | '<' | '>' | '「' | '」');
    line.trim_matches(around).trim_end_matches(['.', '。', ',', '，', ';']).trim_end_matches(around)
}

/// `name({…})`: everything in one.
fn in_brackets(name: &str) -> Option<(&str, &str)> {
    let (name, rest) = name.split_once('(')?;
    let inside = rest.strip_suffix(')')?.trim();
    inside.starts_with('{').then_some((name, inside))
}

/// `{"action": …, "action_input": …}`: the form of another school.
fn in_json(text: &str) -> Option<ReplyCall> {
    let object: HashMap<&str, &RawValue> = serde_json::from_str(without_fence(text)).ok()?;
    let find = |names: [&str; 4]| names.iter().find_map(|name| object.get(name).map(|value| value.get()));
    let name: String = serde_json::from_str(find(["action", "name", "tool", "tool_name"])?).ok()?;
    let input = find(["action_input", "arguments", "input", "parameters"]).unwrap_or_default();
    let arguments = serde_json::from_str::<String>(input).unwrap_or_else(|_| input.to_owned());
    Some(ReplyCall { name, arguments })
}

/// The arguments. An object is taken out of what stands around it; anything else stays as it is, for the check of
/// arguments to judge.
fn arguments(input: &str) -> String {
    let text = without_fence(input);
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    if let Some(Ok(first)) = values.next().filter(|_| text.starts_with('{')) {
        let rest = text[values.byte_offset()..].lines().next().unwrap_or_default();
        // More on the same line may belong to it: then it is not for us to say what was meant.
        if rest.trim_matches(['`', '*', ' ', '\t', '\r', '。', '.']).is_empty() {
            return first.get().to_owned();
        }
    }
    text.to_owned()
}

/// What stands in a code fence, or between backticks.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```") else {
        let single = text.strip_prefix('`').and_then(|inner| inner.strip_suffix('`'));
        return single.map_or(text, str::trim);
    };
    let inner = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    inner.split_once("```").map_or(inner, |(inside, _)| inside).trim()
}
