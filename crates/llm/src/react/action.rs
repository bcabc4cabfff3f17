//! Reads an action and its input as a call.

use redial_proto::ReplyCall;
use serde_json::Value;

use super::{block::Block, keywords};
use crate::{
    json::extent::{self, Style},
    offers::Offers,
    written::object,
};

/// How models write that they need no tool.
const NO_ACTION: [&str; 6] = ["none", "n/a", "null", "无", "没有", "不需要"];
/// What separates a tool's name from a remark about it.
const REMARKS: [&str; 7] = [" - ", " – ", " — ", " # ", " // ", ": ", "："];

/// What an action says.
pub(super) enum Action {
    Call(ReplyCall),
    /// No tool is needed.
    None,
    /// There is more than one reading, or none.
    Unclear,
}

/// Reads an action. Without an input the arguments are empty, and the check of arguments says so.
pub(super) fn read(action: &Block<'_>, input: Option<&Block<'_>>, offers: &Offers) -> Action {
    let text = action.text();
    let input = input.map(Block::text);
    if let Some(found) = in_json(&text, input.as_deref(), offers) {
        return found;
    }
    let (line, more) = text.split_once('\n').unwrap_or((&text, ""));
    let name = bare(line);
    if NO_ACTION.iter().any(|word| name.eq_ignore_ascii_case(word)) || (name.is_empty() && input.is_none()) {
        return Action::None;
    }
    if !offers.has(name) {
        let whole = if input.is_none() { bare(&text) } else { name };
        let below = input.as_deref().or_else(|| Some(more).filter(|more| without_fence(more).starts_with('{')));
        let in_brackets = in_brackets(whole, input.as_deref(), offers).or_else(|| in_brackets(name, below, offers));
        if let Some(found) = in_brackets {
            return found;
        }
        if let Some((name, arguments)) = before_object(whole, offers).filter(|_| is_blank(input.as_deref())) {
            return call(name, arguments.to_owned());
        }
        if let Some(name) = before_remark(name, offers) {
            return call(name, arguments(input.as_deref().unwrap_or(more)));
        }
        if name.find(['(', '（', '{', '[', '=']).is_some_and(|end| offers.has(bare(&name[..end]))) {
            return Action::Unclear;
        }
    }
    call(name.trim_end_matches("()"), arguments(input.as_deref().unwrap_or(more)))
}

/// Reads the arguments in an input. A JSON object is separated from the text around it; anything else is kept for the
/// check of arguments.
fn arguments(input: &str) -> String {
    let text = without_fence(input);
    let object = text.trim_start_matches(['*', '_', '`', '#', '>', '-', ' ', '\t', '\r', '\n']);
    if !object.starts_with('{') {
        return text.to_owned();
    }
    if let Ok(end) = extent::end(object, Style::Loose) {
        let rest = object[end..].lines().next().unwrap_or_default();
        // More text on the same line may belong to the arguments, so it is kept.
        if rest.trim_matches(['`', '*', '_', ' ', '\t', '\r', '。', '.', ';']).is_empty() {
            return object[..end].to_owned();
        }
    }
    object.to_owned()
}

fn call(name: &str, arguments: String) -> Action {
    Action::Call(ReplyCall { name: name.to_owned(), arguments })
}

fn is_blank(text: Option<&str>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}

/// Removes surrounding quotes, brackets and markup from a name.
fn bare(line: &str) -> &str {
    let around =
        |c: char| c.is_whitespace() || matches!(c, '*' | '`' | '"' | '\'' | '[' | ']' | '<' | '>' | '「' | '」');
    line.trim_matches(around).trim_end_matches(['.', '。', ',', '，', ';']).trim_end_matches(around)
}

/// Reads `name({…})`, `name(a="x", b=2)`, `name()`, or a remark: `name (what it does)`. `None` for any other text.
fn in_brackets(text: &str, input: Option<&str>, offers: &Offers) -> Option<Action> {
    let (name, rest) = text.split_once(['(', '（'])?;
    let inside = rest.trim_end_matches([';', '.', '`', '*', ' ']).strip_suffix([')', '）'])?.trim();
    let name = bare(name);
    if name.is_empty()
        || !(offers.has(name) || name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')))
    {
        return None;
    }
    let given = if inside.starts_with('{') { Some(inside.to_owned()) } else { keywords::read(inside) };
    let input = input.filter(|input| !input.trim().is_empty()).map(arguments);
    Some(match (given, input) {
        (Some(given), None) => call(name, given),
        (Some(given), Some(input)) if same(&given, &input) => call(name, input),
        (Some(_), Some(_)) => Action::Unclear,
        (None, Some(input)) => call(name, input),
        (None, None) if is_code(inside) => Action::Unclear,
        (None, None) => call(name, String::new()),
    })
}

/// True if the text between brackets is meant as arguments, in a form that is not understood.
fn is_code(inside: &str) -> bool {
    inside.contains('=')
        || inside.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '"' | '\'' | '[' | '-' | '+'))
}

/// True if two texts are the same JSON. A number that is no 64-bit integer loses digits when it is read, so texts with
/// such numbers must be written in the same way, but for white space.
fn same(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    let written = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    read(one).is_some_and(|value| {
        let exact = !has_fraction(&value);
        Some(value) == read(other) && (exact || written(one) == written(other))
    })
}

/// True if a number in the value was read as a fraction, as integers over 64 bits are. The reader limits the depth.
fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(members) => members.values().any(has_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Splits `name {…}`, where the name is offered.
fn before_object<'a>(text: &'a str, offers: &Offers) -> Option<(&'a str, &'a str)> {
    let (name, object) = text.split_at(text.find('{')?);
    let name = bare(name).trim_end_matches([':', '：', ' ']);
    offers.has(name).then_some((name, object.trim_end()))
}

/// Returns the offered name before a remark, such as `name - what it does`.
fn before_remark<'a>(line: &'a str, offers: &Offers) -> Option<&'a str> {
    let names = REMARKS.iter().filter_map(|between| Some(bare(line.split_once(between)?.0)));
    names.into_iter().find(|name| offers.has(name))
}

/// Reads an action in JSON: `{"action": …, "action_input": …}`, as other ReAct prompts ask for.
fn in_json(text: &str, input: Option<&str>, offers: &Offers) -> Option<Action> {
    let text = without_fence(text);
    if !text.starts_with('{') {
        return None;
    }
    match object::read(text) {
        Some(found) => Some(call(&found.name, found.arguments.unwrap_or_else(|| arguments(input.unwrap_or_default())))),
        None => object::damaged(text, offers).map(|found| Action::Call(found.call)),
    }
}

/// Returns the content of a code fence, or of backticks.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```") else {
        let single = text.strip_prefix('`').and_then(|inner| inner.strip_suffix('`'));
        return single.map_or(text, str::trim);
    };
    let inner = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    inner.split_once("```").map_or(inner, |(inside, _)| inside).trim()
}
