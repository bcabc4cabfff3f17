//! Anthropic messages.

use serde_json::Value;

use super::{Open, alternates, messages, only, text, token, tools};

/// Panics unless the provider accepts the request.
pub(crate) fn accepts(body: &Value) {
    text(&body["model"]);
    assert!(body["max_tokens"].as_u64().is_some_and(|most| most > 0), "max_tokens is above 0");
    if let Some(temperature) = body.get("temperature") {
        assert!(temperature.as_f64().is_some_and(|temperature| (0.0..=1.0).contains(&temperature)), "{temperature}");
    }
    match body.get("system") {
        None => {}
        Some(Value::Array(blocks)) => blocks.iter().for_each(text_block),
        Some(system) => {
            text(system);
        }
    }
    tools(body, |tool| (&tool["name"], &tool["input_schema"]));
    let messages = messages(body);
    alternates(messages);
    let mut open = Open::default();
    for message in messages {
        only(message, &["role", "content"]);
        let one = std::slice::from_ref(&message["content"]);
        let blocks = message["content"].as_array().map_or(one, Vec::as_slice);
        assert!(!blocks.is_empty(), "no content");
        if message["role"] == "assistant" {
            said(blocks, &mut open);
        } else {
            answered(blocks, &mut open);
        }
    }
    assert!(open.ids.is_empty() || body.get("tools").is_some(), "there are calls, so tools must be declared");
}

/// Checks the blocks of an assistant message: thoughts first.
fn said<'a>(blocks: &'a [Value], open: &mut Open<'a>) {
    let is_thought = |block: &Value| ["thinking", "redacted_thinking"].contains(&kind(block));
    let thoughts = blocks.iter().take_while(|block| is_thought(block)).count();
    assert!(thoughts < blocks.len(), "nothing but thoughts");
    for thought in &blocks[..thoughts] {
        let fields = if kind(thought) == "thinking" { &["thinking", "signature"][..] } else { &["data"] };
        assert!(fields.iter().all(|field| thought[field].is_string()), "{thought}");
    }
    for block in &blocks[thoughts..] {
        if kind(block) != "tool_use" {
            text_block(block);
            continue;
        }
        only(block, &["type", "id", "name", "input"]);
        token(&block["name"], 64);
        assert!(block["input"].is_object(), "{block}");
        open.call(token(&block["id"], 64));
    }
}

/// Checks the blocks of a user message: the results of all calls of the message before it, in order, then text.
fn answered(blocks: &[Value], open: &mut Open<'_>) {
    let results = blocks.iter().take_while(|block| kind(block) == "tool_result").count();
    for block in &blocks[..results] {
        only(block, &["type", "tool_use_id", "content", "is_error"]);
        assert!(block.get("is_error").is_none_or(Value::is_boolean), "{block}");
        match block.get("content") {
            None | Some(Value::String(_)) => {}
            Some(content) => content.as_array().unwrap().iter().for_each(text_block),
        }
        open.result(&block["tool_use_id"]);
    }
    open.all_answered();
    blocks[results..].iter().for_each(text_block);
}

/// Checks a text block, or a text that stands for one.
fn text_block(block: &Value) {
    if block.is_object() {
        only(block, &["type", "text", "cache_control"]);
        assert_eq!(kind(block), "text");
        text(&block["text"]);
    } else {
        text(block);
    }
}

fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap_or_default()
}
