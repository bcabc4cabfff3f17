//! Reads an action and its input as a call.

use std::collections::HashMap;

use redial_proto::ReplyCall;
use serde_json::value::RawValue;

use super::block::Block;

/// How models write that they need no tool.
const NO_ACTION: [&str; 6] = ["none", "n/a", "null", "无", "没有", "不需要"];

/// The call; `None` if the action says that no tool is needed. Without an input the arguments are empty.
pub(super) fn read(action: &Block<'_>, input: Option<&Block<'_>>) -> Option<ReplyCall> {
    let text = action.text();
    if let Some(call) = in_json(&text) {
        return Some(call);
    }
    let (line, more) = text.split_once('\n').unwrap_or((&text, ""));
    let name = bare(line);
    if NO_ACTION.iter().any(|word| name.eq_ignore_ascii_case(word)) || (name.is_empty() && input.is_none()) {
        return None;
    }
    let input = input.map_or_else(|| more.to_owned(), Block::text);
    if let Some((name, inside)) = in_brackets(name).filter(|_| input.trim().is_empty()) {
        return Some(ReplyCall { name: bare(name).to_owned(), arguments: inside.to_owned() });
    }
    Some(ReplyCall { name: name.trim_end_matches("()").to_owned(), arguments: arguments(&input) })
}

/// A name without surrounding quotes, brackets and markup.
fn bare(line: &str) -> &str {
    let around =
        |c: char| c.is_whitespace() || matches!(c, '*' | '`' | '"' | '\'' | '[' | ']' | '<' | '>' | '「' | '」');
    line.trim_matches(around).trim_end_matches(['.', '。', ',', '，', ';']).trim_end_matches(around)
}

/// A call in the form `name({…})`.
fn in_brackets(name: &str) -> Option<(&str, &str)> {
    let (name, rest) = name.split_once('(')?;
    let inside = rest.strip_suffix(')')?.trim();
    inside.starts_with('{').then_some((name, inside))
}

/// A call in JSON: `{"action": …, "action_input": …}`, as other ReAct prompts ask for.
fn in_json(text: &str) -> Option<ReplyCall> {
    let object: HashMap<&str, &RawValue> = serde_json::from_str(without_fence(text)).ok()?;
    let find = |names: [&str; 4]| names.iter().find_map(|name| object.get(name).map(|value| value.get()));
    let name: String = serde_json::from_str(find(["action", "name", "tool", "tool_name"])?).ok()?;
    let input = find(["action_input", "arguments", "input", "parameters"]).unwrap_or_default();
    let arguments = serde_json::from_str::<String>(input).unwrap_or_else(|_| input.to_owned());
    Some(ReplyCall { name, arguments })
}

/// The arguments. A JSON object is separated from the text around it; anything else is kept for the check of arguments.
fn arguments(input: &str) -> String {
    let text = without_fence(input);
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    if let Some(Ok(first)) = values.next().filter(|_| text.starts_with('{')) {
        let rest = text[values.byte_offset()..].lines().next().unwrap_or_default();
        // More text on the same line may belong to the arguments, so it is kept.
        if rest.trim_matches(['`', '*', ' ', '\t', '\r', '。', '.']).is_empty() {
            return first.get().to_owned();
        }
    }
    text.to_owned()
}

/// The content of a code fence, or of backticks.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```") else {
        let single = text.strip_prefix('`').and_then(|inner| inner.strip_suffix('`'));
        return single.map_or(text, str::trim);
    };
    let inner = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    inner.split_once("```").map_or(inner, |(inside, _)| inside).trim()
}
