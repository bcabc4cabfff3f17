//! Replies of the messages interface.

use redial_llm::Api;
use redial_proto::TurnUsage;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{check, short, streamed, whole};

pub(super) fn body(content: &Value, reason: &str) -> Value {
    json!({"model": "m", "stop_reason": reason, "content": content, "usage": {"input_tokens": 7, "output_tokens": 3}})
}

/// The blocks of a message, and its reply in short.
#[derive(Deserialize)]
struct Row {
    name: String,
    content: Value,
    stop_reason: String,
    reply: String,
}

#[test]
fn blocks_of_every_kind() {
    for line in include_str!("anthropic.jsonl").lines() {
        let Row { name, content, stop_reason, reply } = serde_json::from_str(line).unwrap();
        check(Api::Anthropic, &name, &body(&content, &stop_reason), &reply);
    }
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "sig"});
    let hidden = json!({"type": "redacted_thinking", "data": "xyz"});
    let content = json!([thinking, hidden, {"type": "text", "text": "hi"}]);
    let kept = whole(Api::Anthropic, &body(&content, "end_turn")).provider.unwrap();
    assert_eq!(kept["thinking"], json!([thinking, hidden]));
    assert_eq!(short(&whole(Api::Anthropic, &body(&json!("hi"), "end_turn"))), "\"hi\" stop");
}

#[test]
fn pieces_without_a_block_of_their_kind_are_kept() {
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "a", "name": "add", "input": {}}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    let events = [
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "text_delta", "text": "I "})),
        start,
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"a\""})),
        delta(0, json!({"type": "text_delta", "text": "look."})),
        delta(0, json!({"type": "input_json_delta", "partial_json": ":1}"})),
        delta(0, json!({"type": "citations_delta", "citation": {}})),
        end,
    ];
    assert_eq!(short(&streamed(Api::Anthropic, &events)), "[hm] add({\"a\":1}) \"I look.\" tool_calls");
}

#[test]
fn a_call_that_the_provider_closed_is_not_taken_for_a_whole_one() {
    let call = json!({"type": "tool_use", "id": "a", "name": "add", "input": {}});
    let text = json!({"type": "text", "text": "hi"});
    for (content, reason, cut_off) in [
        (json!([text, call]), "max_tokens", true),
        (json!([text, call]), "tool_use", false),
        (json!([call, text]), "max_tokens", false),
    ] {
        let body = json!({"model": "m", "stop_reason": reason, "content": content});
        assert_eq!(whole(Api::Anthropic, &body).call_cut_off, cut_off, "{body}");
    }
    let begun = [
        json!({"type": "content_block_start", "index": 0, "content_block": call}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
    ];
    assert!(streamed(Api::Anthropic, &begun).call_cut_off, "nothing was written of its arguments");
}

#[test]
fn usage_that_is_not_told_is_unknown() {
    let told = |usage: &Value| {
        let content = json!([{"type": "text", "text": "hi"}]);
        let body = json!({"model": "m", "stop_reason": "end_turn", "content": content, "usage": usage});
        check(Api::Anthropic, "usage", &body, "\"hi\" stop");
        let TurnUsage { input_tokens, output_tokens, .. } = whole(Api::Anthropic, &body).usage;
        (input_tokens, output_tokens)
    };
    let cached = told(&json!({"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 0}));
    assert_eq!(cached, (Some(10), Some(0)));
    assert_eq!(told(&json!({"output_tokens": 3})), (None, Some(3)));
    assert_eq!(told(&json!({"input_tokens": 3})), (Some(3), None));
    assert_eq!(told(&json!(null)), (None, None));
    // What was written when the stream began is no count of the answer.
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
    ];
    assert_eq!(streamed(Api::Anthropic, &events).usage, TurnUsage { input_tokens: Some(7), ..TurnUsage::default() });
}
