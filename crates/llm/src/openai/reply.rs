//! Maps the body of a response to a reply.

use redial_proto::{Finish, ReplyCall, TurnReply, TurnRequest, Usage};
use serde_json::{Value, json};

use super::KIND;
use crate::names::Names;

/// Reads a response body; `None` if it has no `choices` at all. The arguments of calls are kept as they were written.
pub fn reply(request: &TurnRequest, body: &Value) -> Option<TurnReply> {
    let choices = body.get("choices")?.as_array()?;
    let names = Names::of(request);
    let mut reply = TurnReply {
        usage: usage(body),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        ..TurnReply::default()
    };
    let Some(message) = choices.first().and_then(|choice| choice.get("message")).filter(|message| message.is_object())
    else {
        reply.finish = Finish::Other;
        reply.problem = Some("The answer was empty.".to_owned());
        return Some(reply);
    };
    let refusal = message["refusal"].as_str().filter(|refusal| !refusal.is_empty());
    let (text, thought) = without_thoughts(content(message));
    reply.text = Some(text).filter(|text| !text.trim().is_empty()).or(refusal.map(str::to_owned));
    reply.thought = ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|field| message[field].as_str())
        .filter(|thought| !thought.trim().is_empty())
        .map(str::to_owned)
        .or(thought);
    let raw_calls = calls(message);
    reply.calls = raw_calls.iter().map(|call| read_call(call, &names)).collect();
    reply.finish = match choices[0]["finish_reason"].as_str() {
        _ if refusal.is_some() => Finish::Refused,
        reason => finish(reason, !reply.calls.is_empty()),
    };
    reply.provider = kept(message, &raw_calls);
    Some(reply)
}

/// The reply for a call that the provider could not parse. Its error contains the text that the model wrote.
pub(crate) fn failed_generation(body: &[u8]) -> Option<TurnReply> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error").filter(|error| error["code"] == "tool_use_failed")?;
    let written = error["failed_generation"].as_str().unwrap_or_default().trim();
    Some(TurnReply {
        text: (!written.is_empty()).then(|| written.to_owned()),
        finish: Finish::Other,
        problem: Some("The call was not in the required format, so nothing was run.".to_owned()),
        ..TurnReply::default()
    })
}

/// The text of a message: a string, or a list of parts of which some are text.
fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Separates the thoughts of reasoning models, which some servers leave in front of the text.
fn without_thoughts(text: String) -> (String, Option<String>) {
    let Some(rest) = text.trim_start().strip_prefix("<think>") else { return (text, None) };
    let (thought, answer) = rest.split_once("</think>").unwrap_or((rest, ""));
    let thought = thought.trim();
    (answer.trim_start().to_owned(), (!thought.is_empty()).then(|| thought.to_owned()))
}

/// The calls, from `tool_calls` or from the older field `function_call`.
fn calls(message: &Value) -> Vec<Value> {
    match (&message["tool_calls"], &message["function_call"]) {
        (Value::Array(calls), _) if !calls.is_empty() => calls.clone(),
        (_, function @ Value::Object(_)) => vec![json!({"function": function})],
        _ => Vec::new(),
    }
}

/// Reads a call without checking it: its name and arguments are checked later.
fn read_call(call: &Value, names: &Names) -> ReplyCall {
    let function = call.get("function").unwrap_or(call);
    let arguments = match &function["arguments"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    ReplyCall { name: names.own(function["name"].as_str().unwrap_or_default()), arguments }
}

fn finish(reason: Option<&str>, called: bool) -> Finish {
    match reason {
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::Refused,
        _ if called => Finish::ToolCalls,
        Some("stop") => Finish::Stop,
        _ => Finish::Other,
    }
}

fn usage(body: &Value) -> Usage {
    let tokens = |field: &str| body["usage"][field].as_u64().unwrap_or_default();
    Usage { input_tokens: tokens("prompt_tokens"), output_tokens: tokens("completion_tokens"), cost_micros: 0 }
}

/// Data that some providers require unchanged in the next request: `reasoning_details` (OpenRouter), and `extra_content`
/// of calls, where Gemini puts the signatures of its thoughts.
fn kept(message: &Value, calls: &[Value]) -> Option<Value> {
    let details = message.get("reasoning_details").filter(|details| !details.is_null());
    let extras: Vec<Value> = calls.iter().map(|call| call["extra_content"].clone()).collect();
    let signed = extras.iter().any(|extra| !extra.is_null());
    if details.is_none() && !signed {
        return None;
    }
    let mut kept = json!({"kind": KIND});
    if let Some(details) = details {
        kept["reasoning_details"] = details.clone();
    }
    if signed {
        kept["calls"] = extras.into();
    }
    Some(kept)
}
