//! The body of an answer → a reply.

use redial_proto::{Finish, ReplyCall, TurnReply, TurnRequest, Usage};
use serde_json::{Value, json};

use super::KIND;
use crate::names::Names;

/// Reads an answer; none if it has no `choices` at all. Calls keep their arguments as they were written.
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
    let wanted = calls(message);
    reply.calls = wanted.iter().map(|call| read_call(call, &names)).collect();
    reply.finish = match choices[0]["finish_reason"].as_str() {
        _ if refusal.is_some() => Finish::Refused,
        reason => finish(reason, !reply.calls.is_empty()),
    };
    reply.provider = kept(message, &wanted);
    Some(reply)
}

/// A call that its provider could not read and therefore answered with an error: the model's words are in it.
pub(crate) fn salvage(body: &[u8]) -> Option<TurnReply> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error").filter(|error| error["code"] == "tool_use_failed")?;
    let written = error["failed_generation"].as_str().unwrap_or_default().trim();
    Some(TurnReply {
        text: (!written.is_empty()).then(|| written.to_owned()),
        finish: Finish::Other,
        problem: Some("The call was not written in the form that calls must have, so nothing was run.".to_owned()),
        ..TurnReply::default()
    })
}

/// A text, or a list of parts of which some are text.
fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Servers without a parser for it leave the thoughts of reasoning models in front of the text.
fn without_thoughts(text: String) -> (String, Option<String>) {
    let Some(rest) = text.trim_start().strip_prefix("<think>") else { return (text, None) };
    let (thought, answer) = rest.split_once("</think>").unwrap_or((rest, ""));
    let thought = thought.trim();
    (answer.trim_start().to_owned(), (!thought.is_empty()).then(|| thought.to_owned()))
}

/// The calls, also in the one form that was there before `tool_calls`.
fn calls(message: &Value) -> Vec<Value> {
    match (&message["tool_calls"], &message["function_call"]) {
        (Value::Array(calls), _) if !calls.is_empty() => calls.clone(),
        (_, function @ Value::Object(_)) => vec![json!({"function": function})],
        _ => Vec::new(),
    }
}

/// Whatever is wrong with a call is found when its name and arguments are checked.
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

/// What some providers want back unchanged: `reasoning_details` (OpenRouter), and `extra_content` of calls (Gemini
/// signs its thoughts there, and refuses the next request without).
fn kept(message: &Value, calls: &[Value]) -> Option<Value> {
    let details = message.get("reasoning_details").filter(|details| !details.is_null());
    let beside: Vec<Value> = calls.iter().map(|call| call["extra_content"].clone()).collect();
    let signed = beside.iter().any(|extra| !extra.is_null());
    if details.is_none() && !signed {
        return None;
    }
    let mut kept = json!({"kind": KIND});
    if let Some(details) = details {
        kept["reasoning_details"] = details.clone();
    }
    if signed {
        kept["calls"] = beside.into();
    }
    Some(kept)
}
