//! The events of a stream that says the same as a whole body.

use redial_llm::Api;
use serde_json::{Value, json};

use super::cut::Cut;

pub(crate) fn of(api: Api, body: &Value, cut: Cut) -> Vec<Value> {
    match api {
        Api::OpenAi => chunks(body, cut),
        Api::Anthropic => events(body, cut),
    }
}

fn chunks(body: &Value, cut: Cut) -> Vec<Value> {
    let choice = &body["choices"][0];
    let chunk = |delta: Value| json!({"model": body["model"], "choices": [{"index": 0, "delta": delta}]});
    let mut chunks = vec![chunk(json!({"role": "assistant"}))];
    for (field, value) in choice["message"].as_object().unwrap() {
        let is_thought = ["reasoning_content", "reasoning", "thinking"].contains(&field.as_str());
        if cut == Cut::Message || (cut == Cut::MessageAfterThoughts && !is_thought) {
            continue;
        }
        match field.as_str() {
            "tool_calls" => {
                let calls = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
                for (index, call) in calls.iter().enumerate() {
                    let pieces = call_pieces(call, index, cut);
                    chunks.extend(pieces.into_iter().map(|piece| chunk(json!({"tool_calls": [piece]}))));
                }
            }
            "function_call" => {
                let pieces = function_pieces(value, cut);
                chunks.extend(pieces.into_iter().map(|piece| chunk(json!({"function_call": piece}))));
            }
            "role" => {}
            _ => chunks.extend(content_pieces(value, cut).into_iter().map(|piece| chunk(json!({field: piece})))),
        }
    }
    if matches!(cut, Cut::Message | Cut::MessageAfterThoughts | Cut::MessageAtEnd) {
        chunks.push(json!({"choices": [{"message": choice["message"]}]}));
    }
    chunks.push(json!({"choices": [{"delta": {}, "finish_reason": choice["finish_reason"]}]}));
    if choice["finish_reason"].is_null() {
        // The end of a stream without a reason is not an event.
        return chunks;
    }
    chunks.push(json!({"choices": [], "usage": body["usage"]}));
    chunks
}

/// A text, or a list of parts, in pieces.
fn content_pieces(content: &Value, cut: Cut) -> Vec<Value> {
    match content {
        Value::String(text) => cut.text(text).into_iter().map(Value::from).collect(),
        Value::Array(parts) => {
            let pieces: Vec<Value> = parts.iter().flat_map(|part| part_pieces(part, cut)).collect();
            match cut {
                Cut::Together => vec![pieces.into()],
                _ => pieces.into_iter().map(|piece| json!([piece])).collect(),
            }
        }
        other => part_pieces(other, cut),
    }
}

/// A part in pieces of the same kind.
fn part_pieces(part: &Value, cut: Cut) -> Vec<Value> {
    let Some(fields) = part.as_object() else {
        return part
            .as_str()
            .map_or_else(|| vec![part.clone()], |text| cut.text(text).into_iter().map(Value::from).collect());
    };
    let text =
        ["text", "thinking", "reasoning", "refusal", "summary"].into_iter().find(|field| fields.contains_key(*field));
    let Some(field) = text else { return vec![part.clone()] };
    let with = |piece: Value| {
        let mut copy = part.clone();
        copy[field] = piece;
        copy
    };
    content_pieces(&part[field], cut).into_iter().map(with).collect()
}

fn call_pieces(call: &Value, index: usize, cut: Cut) -> Vec<Value> {
    let index = if cut == Cut::SameIndex { 0 } else { index };
    let flat = call.get("function").is_none_or(Value::is_string);
    let function = if flat { call } else { &call["function"] };
    let wrap = |(n, function): (usize, Value)| {
        let mut piece = if flat { function } else { json!({"function": function}) };
        if cut != Cut::WithoutIndex {
            piece["index"] = index.into();
        }
        for field in ["id", "type", "extra_content"] {
            if (n == 0 || (cut == Cut::Repeated && field == "id")) && !call[field].is_null() {
                piece[field] = call[field].clone();
            }
        }
        piece
    };
    function_pieces(function, cut).into_iter().enumerate().map(wrap).collect()
}

/// The name, then the arguments.
fn function_pieces(function: &Value, cut: Cut) -> Vec<Value> {
    let name = if function["name"].is_string() { "name" } else { "function" };
    let mut pieces = Vec::new();
    let written = function[name].as_str().unwrap_or_default();
    match cut {
        Cut::Names => pieces.extend(cut.text(written).into_iter().map(|piece| json!({name: piece}))),
        _ => pieces.push(json!({name: written, "arguments": ""})),
    }
    let field = ["arguments", "parameters", "input"].into_iter().find(|field| function.get(*field).is_some());
    let Some(field) = field else { return pieces };
    let arguments = match &function[field] {
        Value::String(text) => cut.text(text).into_iter().map(Value::from).collect(),
        other => vec![other.clone()],
    };
    for piece in arguments {
        let repeats = cut == Cut::Repeated && !function["arguments"].is_object();
        pieces.push(if repeats { json!({name: written, field: piece}) } else { json!({field: piece}) });
    }
    if cut == Cut::SameIndex {
        // Ollama sends each call in one piece.
        let mut whole = pieces.pop().unwrap();
        whole[name] = written.into();
        return vec![whole];
    }
    pieces
}

fn events(body: &Value, cut: Cut) -> Vec<Value> {
    let usage = body["usage"].as_object().cloned().unwrap_or_default();
    let (output, input): (serde_json::Map<_, _>, _) =
        usage.into_iter().partition(|(field, _)| field == "output_tokens");
    let mut events = vec![json!({"type": "message_start", "message": {"model": body["model"], "usage": input}})];
    for (index, block) in body["content"].as_array().unwrap().iter().enumerate() {
        let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let (mut start, mut deltas) = (block.clone(), Vec::new());
        for (kind, field, piece) in [
            ("text_delta", "text", "text"),
            ("thinking_delta", "thinking", "thinking"),
            ("signature_delta", "signature", "signature"),
            ("input_json_delta", "input", "partial_json"),
        ] {
            let text = match &block[field] {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            start[field] = if field == "input" { json!({}) } else { "".into() };
            let pieces = cut.text(&text).into_iter();
            deltas.extend(pieces.map(|text| delta(json!({"type": kind, piece: text}))));
        }
        if cut != Cut::WithoutIndex || block["type"] == "tool_use" || block["type"] == "redacted_thinking" {
            events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        }
        events.extend(deltas);
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": body["stop_reason"]}, "usage": output}));
    events.push(json!({"type": "message_stop"}));
    events
}
