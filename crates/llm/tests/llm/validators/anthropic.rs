//! Anthropic messages.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Faults, alternates};

/// What is wrong with a request.
pub(crate) fn faults(body: &Value) -> Vec<String> {
    let mut faults = Faults::default();
    faults.text(&body["model"], "model");
    faults.check(body["max_tokens"].as_u64().is_some_and(|most| most > 0), "max_tokens", "a number above 0 is needed");
    if let Some(temperature) = body.get("temperature") {
        let fine = temperature.as_f64().is_some_and(|temperature| (0.0..=1.0).contains(&temperature));
        faults.check(fine, "temperature", format_args!("{temperature} is not 0 to 1"));
    }
    system(&mut faults, body.get("system"));
    faults.tools(body, |tool| (&tool["name"], &tool["input_schema"]));
    match body["messages"].as_array() {
        Some(messages) if !messages.is_empty() => conversation(&mut faults, messages),
        _ => faults.add("messages", "a list that is not empty is needed"),
    }
    let blocks = body["messages"].as_array().into_iter().flatten().filter_map(|message| message["content"].as_array());
    let calls = blocks.flatten().any(|block| kind(block) == "tool_use");
    faults.check(!calls || body.get("tools").is_some(), "tools", "there are calls, so tools must be declared");
    faults.0
}

fn system(faults: &mut Faults, system: Option<&Value>) {
    match system {
        None => {}
        Some(Value::Array(blocks)) => blocks.iter().for_each(|block| text_block(faults, block, "system")),
        Some(text) => faults.text(text, "system"),
    }
}

fn conversation(faults: &mut Faults, messages: &[Value]) {
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    alternates(faults, &roles);
    let mut ids = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let place = format!("messages[{n}]");
        match message.as_object() {
            Some(object) => faults.only(object, &["role", "content"], &place),
            None => faults.add(&place, "it is no object"),
        }
        let text = [message["content"].clone()];
        let blocks = match &message["content"] {
            Value::Array(blocks) => &blocks[..],
            _ => &text,
        };
        faults.check(!blocks.is_empty(), &place, "the content is empty");
        if message["role"] == "assistant" {
            open = calls(faults, blocks, &mut ids, &place);
        } else {
            results(faults, blocks, std::mem::take(&mut open), &place);
        }
    }
}

/// The blocks of an assistant message; the ids of its calls.
fn calls(faults: &mut Faults, blocks: &[Value], ids: &mut BTreeSet<String>, place: &str) -> Vec<String> {
    let mut open = Vec::new();
    let mut spoken = false;
    for block in blocks {
        match kind(block) {
            "tool_use" => {
                faults.only(members(block), &["type", "id", "name", "input"], place);
                faults.token(&block["id"], 64, place);
                faults.name(&block["name"], place);
                faults.check(block["input"].is_object(), place, format_args!("input {} is no object", block["input"]));
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                faults.check(ids.insert(id.clone()), place, format_args!("id {id:?} is there twice"));
                open.push(id);
            }
            "thinking" => {
                let signed = block["thinking"].is_string() && block["signature"].is_string();
                faults.check(signed, place, "a thinking block without its text or signature");
                faults.check(!spoken, place, "a thinking block does not stand first");
                continue;
            }
            "redacted_thinking" => {
                faults.check(block["data"].is_string(), place, "a redacted_thinking block without data");
                faults.check(!spoken, place, "a thinking block does not stand first");
                continue;
            }
            _ => text_block(faults, block, place),
        }
        spoken = true;
    }
    faults.check(spoken, place, "nothing but thoughts");
    open
}

/// The blocks of a user message: the results of all calls of the message before it, in order, then text.
fn results(faults: &mut Faults, blocks: &[Value], mut open: Vec<String>, place: &str) {
    let mut text = false;
    for block in blocks {
        if kind(block) != "tool_result" {
            text = true;
            text_block(faults, block, place);
            continue;
        }
        faults.check(!text, place, "a tool_result after a text");
        faults.only(members(block), &["type", "tool_use_id", "content", "is_error"], place);
        let fine = block.get("is_error").is_none_or(Value::is_boolean);
        faults.check(fine, place, "is_error is neither true nor false");
        result_content(faults, block.get("content"), place);
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        match open.iter().position(|waiting| waiting == id) {
            None => faults.add(place, format_args!("{id:?} is no call of the message before")),
            Some(at) => {
                faults.check(at == 0, place, format_args!("{id:?} is answered before {:?}", open[0]));
                open.remove(at);
            }
        }
    }
    for id in open {
        faults.add(place, format_args!("call {id:?} is not answered here"));
    }
}

fn result_content(faults: &mut Faults, content: Option<&Value>, place: &str) {
    match content {
        None | Some(Value::String(_)) => {}
        Some(Value::Array(blocks)) => blocks.iter().for_each(|block| text_block(faults, block, place)),
        Some(other) => faults.add(place, format_args!("a tool_result holds {other}")),
    }
}

/// A text block, or a text that stands for one.
fn text_block(faults: &mut Faults, block: &Value, place: &str) {
    match block {
        Value::String(_) => faults.text(block, place),
        Value::Object(object) if kind(block) == "text" => {
            faults.only(object, &["type", "text", "cache_control"], place);
            faults.text(&block["text"], place);
        }
        other => faults.add(place, format_args!("{other} has no place here")),
    }
}

fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap_or_default()
}

fn members(block: &Value) -> &Map<String, Value> {
    block.as_object().unwrap()
}

mod tests {
    use serde_json::json;

    use super::{
        super::mutations::{is_refused, put, remove},
        *,
    };

    fn good() -> Value {
        json!({
            "model": "m",
            "max_tokens": 1000,
            "system": "be brief",
            "temperature": 0.5,
            "messages": [
                {"role": "user", "content": "weather?"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {}},
                    {"type": "tool_use", "id": "c2", "name": "get_weather", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "{}"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "no"}],
                     "is_error": true},
                    {"type": "text", "text": "answer now"},
                ]},
                {"role": "assistant", "content": [{"type": "text", "text": "rain"}]},
                {"role": "user", "content": [{"type": "text", "text": "thanks"}]},
            ],
            "tools": [{"name": "get_weather", "input_schema": {"type": "object"}}],
        })
    }

    #[test]
    fn a_changed_value_is_found() {
        for (pointer, value, wanted) in [
            ("/max_tokens", json!(0), "max_tokens: a number above 0"),
            ("/temperature", json!(1.5), "temperature: 1.5 is not 0 to 1"),
            ("/system", json!(""), "system: the text is empty"),
            ("/messages", json!([]), "messages: a list that is not empty"),
            ("/messages/0/role", json!("system"), "messages[0]: the role is \"system\""),
            ("/messages/0/role", json!("assistant"), "messages[0]: the role is \"assistant\""),
            ("/messages/0/content", json!(""), "messages[0]: the text is empty"),
            ("/messages/0/content", json!([]), "messages[0]: the content is empty"),
            ("/messages/0/name", json!("x"), "messages[0]: \"name\" is not allowed here"),
            ("/messages/1/content/0/signature", json!(null), "a thinking block without"),
            ("/messages/1/content/1/text", json!(" \n"), "messages[1]: the text is empty"),
            ("/messages/1/content/1", json!({"type": "thinking"}), "messages[1]: a thinking block without"),
            ("/messages/1/content/2/input", json!("{}"), "is no object"),
            ("/messages/1/content/2/id", json!("c.1"), "is not 1 to 64 of"),
            ("/messages/1/content/2/id", json!("c2"), "\"c2\" is there twice"),
            ("/messages/1/content/2/id", json!("c3"), "messages[2]: call \"c3\" is not answered here"),
            ("/messages/1/content/2/name", json!("订机票"), "is not 1 to 64 of"),
            ("/messages/1/content/1", json!({"type": "tool_result"}), "has no place here"),
            ("/messages/2/role", json!("tool"), "messages[2]: the role is \"tool\""),
            ("/messages/2/content/0/tool_use_id", json!("c2"), "\"c2\" is answered before \"c1\""),
            ("/messages/2/content/1/tool_use_id", json!("c1"), "\"c1\" is no call of the message before"),
            ("/messages/2/content/0/content", json!({}), "a tool_result holds {}"),
            ("/messages/2/content/1/content/0/text", json!(""), "messages[2]: the text is empty"),
            ("/messages/2/content/1/is_error", json!("yes"), "is_error is neither"),
            ("/messages/2/content/2/text", json!(""), "messages[2]: the text is empty"),
            ("/messages/2/content", json!("what?"), "messages[2]: call \"c1\" is not answered here"),
            ("/messages/4/content/0", json!({"type": "tool_use"}), "messages[4]: "),
            ("/tools", json!([]), "tools: a list that is not empty"),
            ("/tools/0/name", json!("a b"), "tools[0]: \"a b\" is not"),
            ("/tools/0/input_schema", json!({}), "tools[0]: its schema"),
        ] {
            is_refused(&good(), |body| put(body, pointer, value), wanted, faults);
        }
    }

    #[test]
    fn a_missing_or_added_part_is_found() {
        for (pointer, wanted) in [
            ("/model", "model: a text is needed"),
            ("/max_tokens", "max_tokens: a number above 0"),
            ("/messages/0", "messages[0]: the role is \"assistant\""),
            ("/messages/1", "messages[1]: \"c1\" is no call of the message before"),
            ("/messages/2", "messages[2]: the role is \"assistant\"; \"user\" has its turn"),
            ("/messages/4", "messages: the last one is not the user's"),
            ("/tools", "tools: there are calls, so tools must be declared"),
            ("/messages/2/content/0", "messages[2]: call \"c1\" is not answered here"),
        ] {
            is_refused(&good(), |body| remove(body, pointer), wanted, faults);
        }
        let late = json!({"type": "tool_result", "tool_use_id": "c1"});
        is_refused(
            &good(),
            |body| put(body, "/messages/2/content/-", late.clone()),
            "a tool_result after a text",
            faults,
        );
        is_refused(&good(), |body| put(body, "/messages/4/content/-", late), "no call of the message before", faults);
        let thought = json!({"type": "thinking", "thinking": "", "signature": "s"});
        is_refused(&good(), |body| put(body, "/messages/1/content/-", thought.clone()), "does not stand first", faults);
        is_refused(&good(), |body| put(body, "/messages/3/content", json!([thought])), "nothing but thoughts", faults);
        is_refused(
            &good(),
            |body| put(body, "/messages/-", json!({"role": "user", "content": "x"})),
            "has its turn",
            faults,
        );
    }
}
