//! Maps the body of a response to a reply.

use redial_proto::{Finish, ReplyCall, TurnReply, TurnRequest, Usage};
use serde_json::{Value, json};

use super::KIND;
use crate::names::Names;

/// Reads a response body; `None` if it has no `content` at all. The arguments of calls are kept as they were written.
pub fn reply(request: &TurnRequest, body: &Value) -> Option<TurnReply> {
    let blocks = body.get("content")?.as_array()?;
    let names = Names::of(request);
    let of_kind = |kind: &'static str| blocks.iter().filter(move |block| block["type"] == kind);
    let calls: Vec<ReplyCall> = of_kind("tool_use").map(|block| read_call(block, &names)).collect();
    let text: String = of_kind("text").filter_map(|block| block["text"].as_str()).collect();
    let thought: String = of_kind("thinking").filter_map(|block| block["thinking"].as_str()).collect();
    let finish = finish(body["stop_reason"].as_str(), !calls.is_empty());
    Some(TurnReply {
        text: Some(text).filter(|text| !text.trim().is_empty()),
        thought: Some(thought).filter(|thought| !thought.trim().is_empty()),
        calls,
        finish,
        problem: None,
        usage: usage(&body["usage"]),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        provider: kept(blocks),
    })
}

fn read_call(block: &Value, names: &Names) -> ReplyCall {
    let arguments = match &block["input"] {
        // A streamed response has the text that was written.
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        input => input.to_string(),
    };
    ReplyCall { name: names.own(block["name"].as_str().unwrap_or_default()), arguments }
}

fn finish(reason: Option<&str>, called: bool) -> Finish {
    match reason {
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::Refused,
        _ if called => Finish::ToolCalls,
        Some("end_turn" | "stop_sequence") => Finish::Stop,
        _ => Finish::Other,
    }
}

/// Tokens that were read from a cache or written to one count as input tokens.
fn usage(usage: &Value) -> Usage {
    let tokens = |field: &str| usage[field].as_u64().unwrap_or_default();
    let cached = tokens("cache_creation_input_tokens").saturating_add(tokens("cache_read_input_tokens"));
    Usage {
        input_tokens: tokens("input_tokens").saturating_add(cached),
        output_tokens: tokens("output_tokens"),
        cost_micros: 0,
    }
}

/// Signed thoughts, which must be sent back unchanged with the results of the calls that they led to.
fn kept(blocks: &[Value]) -> Option<Value> {
    let thinking: Vec<&Value> =
        blocks.iter().filter(|block| block["type"] == "thinking" || block["type"] == "redacted_thinking").collect();
    (!thinking.is_empty()).then(|| json!({"kind": KIND, "thinking": thinking}))
}
