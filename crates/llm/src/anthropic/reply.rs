//! Maps the body of a response to a reply.

use redial_proto::{Finish, ReplyCall, TurnReply, TurnRequest, TurnUsage};
use serde_json::{Value, json};

use super::KIND;
use crate::{finish, offers::Offers, text};

/// Reads a response body; `None` if it has no `content` at all. The arguments of calls are kept as they were written.
pub fn reply(request: &TurnRequest, body: &Value) -> Option<TurnReply> {
    match body.get("content")? {
        Value::Array(blocks) => Some(of(request, blocks, body)),
        Value::String(text) => Some(of(request, &[json!({"type": "text", "text": text})], body)),
        _ => None,
    }
}

/// Makes the reply for these blocks; `body` has the other fields of the response.
pub(super) fn of(request: &TurnRequest, blocks: &[Value], body: &Value) -> TurnReply {
    let offers = Offers::of(request);
    let of_kind = |kind: &'static str| blocks.iter().filter(move |block| block["type"] == kind);
    let calls: Vec<ReplyCall> = of_kind("tool_use").map(|block| read_call(block, &offers)).collect();
    let text: String = of_kind("text").filter_map(|block| block["text"].as_str()).collect();
    let thought: String = of_kind("thinking").filter_map(|block| block["thinking"].as_str()).collect();
    let read = text::read(&text, Some(thought), calls, &offers, request.language);
    let finish = finish::read(body["stop_reason"].as_str(), !read.calls.is_empty());
    TurnReply {
        text: read.text,
        thought: read.thought,
        finish,
        call_cut_off: is_cut_off_in_call(blocks, finish),
        calls: read.calls,
        problem: read.problem,
        usage: usage(&body["usage"]),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        provider: kept(blocks),
    }
}

/// True if the answer is cut off within a call: after a whole call the reason is `tool_use`. A response that is not
/// streamed has objects only: the provider closes what the model had not finished, so the arguments do not tell.
fn is_cut_off_in_call(blocks: &[Value], finish: Finish) -> bool {
    finish == Finish::Length && blocks.last().is_some_and(|block| block["type"] == "tool_use")
}

fn read_call(block: &Value, offers: &Offers) -> ReplyCall {
    let arguments = match &block["input"] {
        // A streamed response has the text that was written.
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        input => input.to_string(),
    };
    ReplyCall { name: offers.own(block["name"].as_str().unwrap_or_default()), arguments }
}

/// Reads the usage. Tokens that were read from a cache or written to one count as input tokens.
fn usage(usage: &Value) -> TurnUsage {
    let tokens = |field: &str| usage[field].as_u64();
    let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].map(tokens);
    let told = input.iter().any(Option::is_some);
    TurnUsage {
        input_tokens: told.then(|| input.into_iter().flatten().fold(0, u64::saturating_add)),
        output_tokens: tokens("output_tokens"),
        ..TurnUsage::default()
    }
}

/// Keeps signed thoughts, which must be sent back unchanged with the results of the calls that they led to.
fn kept(blocks: &[Value]) -> Option<Value> {
    let thinking: Vec<&Value> =
        blocks.iter().filter(|block| block["type"] == "thinking" || block["type"] == "redacted_thinking").collect();
    (!thinking.is_empty()).then(|| json!({"kind": KIND, "thinking": thinking}))
}
