//! The events of a stream that says the same as a whole body.

use redial_llm::Api;
use serde_json::{Map, Value, json};

/// How the pieces of a stream are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Each text is two pieces.
    Half,
    /// Each character is a piece, of names too.
    Character,
    /// As `Half`; the pieces of calls have no index, and those of texts no start.
    WithoutIndex,
    /// As `Half`; each call is one piece, and has index 0, as Ollama sends it.
    SameIndex,
    /// As `Half`; each piece of a call repeats its name and its id.
    Repeated,
    /// As `Half`; then the whole message is in one chunk.
    MessageAtEnd,
}

pub(crate) const CUTS: [Cut; 6] =
    [Cut::Half, Cut::Character, Cut::WithoutIndex, Cut::SameIndex, Cut::Repeated, Cut::MessageAtEnd];

impl Cut {
    fn text(self, text: &str) -> Vec<Value> {
        if self == Self::Character {
            return text.chars().map(|c| c.to_string().into()).collect();
        }
        let (left, right) = text.split_at(text.floor_char_boundary(text.len() / 2));
        vec![left.into(), right.into()]
    }
}

pub(crate) fn of(api: Api, body: &Value, cut: Cut) -> Vec<Value> {
    match api {
        Api::OpenAi => chunks(body, cut),
        Api::Anthropic => events(body, cut),
    }
}

fn chunks(body: &Value, cut: Cut) -> Vec<Value> {
    let choice = &body["choices"][0];
    let mut deltas = vec![json!({"role": "assistant"})];
    for (field, value) in choice["message"].as_object().unwrap() {
        match field.as_str() {
            "tool_calls" => {
                let calls = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                let pieces = calls.iter().enumerate().flat_map(|(index, call)| call_pieces(call, index, cut));
                deltas.extend(pieces.map(|piece| json!({"tool_calls": [piece]})));
            }
            "role" => {}
            "function_call" => {
                deltas.extend(function_pieces(value, cut).into_iter().map(|piece| json!({field: piece})));
            }
            _ => deltas.extend(content_pieces(value, cut).into_iter().map(|piece| json!({field: piece}))),
        }
    }
    let chunk = |delta| json!({"model": body["model"], "choices": [{"index": 0, "delta": delta}]});
    let mut chunks: Vec<Value> = deltas.into_iter().map(chunk).collect();
    if cut == Cut::MessageAtEnd {
        chunks.push(json!({"choices": [{"message": choice["message"]}]}));
    }
    chunks.push(json!({"choices": [{"delta": {}, "finish_reason": choice["finish_reason"]}]}));
    // The end of a stream without a reason is not an event.
    if !choice["finish_reason"].is_null() {
        chunks.push(json!({"choices": [], "usage": body["usage"]}));
    }
    chunks
}

/// Cuts a text, or a list of parts, into pieces.
fn content_pieces(content: &Value, cut: Cut) -> Vec<Value> {
    match content {
        Value::Array(parts) => {
            parts.iter().flat_map(|part| part_pieces(part, cut)).map(|piece| json!([piece])).collect()
        }
        other => part_pieces(other, cut),
    }
}

/// Cuts a part into pieces of the same kind.
fn part_pieces(part: &Value, cut: Cut) -> Vec<Value> {
    if let Some(text) = part.as_str() {
        return cut.text(text);
    }
    let mut texts = ["text", "thinking", "reasoning", "refusal", "summary"].into_iter();
    let Some(field) = texts.find(|field| part.get(field).is_some()) else { return vec![part.clone()] };
    let with = |piece: Value| {
        let mut copy = part.clone();
        copy[field] = piece;
        copy
    };
    content_pieces(&part[field], cut).into_iter().map(with).collect()
}

fn call_pieces(call: &Value, index: usize, cut: Cut) -> Vec<Value> {
    let is_flat = call.get("function").is_none_or(Value::is_string);
    let function = if is_flat { call } else { &call["function"] };
    let wrap = |(n, function): (usize, Value)| {
        let mut piece = if is_flat { function } else { json!({"function": function}) };
        if cut != Cut::WithoutIndex {
            piece["index"] = if cut == Cut::SameIndex { 0 } else { index }.into();
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

/// Sends the name, then the arguments.
fn function_pieces(function: &Value, cut: Cut) -> Vec<Value> {
    if cut == Cut::SameIndex {
        return vec![function.clone()];
    }
    let name = if function["name"].is_string() { "name" } else { "function" };
    let written = function[name].as_str().unwrap_or_default();
    let mut pieces: Vec<Value> = match cut {
        Cut::Character => cut.text(written).into_iter().map(|piece| json!({name: piece})).collect(),
        _ => vec![json!({name: written, "arguments": ""})],
    };
    let mut fields = ["arguments", "parameters", "input"].into_iter();
    let Some(field) = fields.find(|field| function.get(field).is_some()) else { return pieces };
    let arguments = function[field].as_str().map_or_else(|| vec![function[field].clone()], |text| cut.text(text));
    let repeats = cut == Cut::Repeated && !function["arguments"].is_object();
    let piece = |piece: Value| if repeats { json!({name: written, field: piece}) } else { json!({field: piece}) };
    pieces.extend(arguments.into_iter().map(piece));
    pieces
}

fn events(body: &Value, cut: Cut) -> Vec<Value> {
    let usage = body["usage"].as_object().cloned().unwrap_or_default();
    let (output, input): (Map<_, _>, Map<_, _>) = usage.into_iter().partition(|(field, _)| field == "output_tokens");
    let mut events = vec![json!({"type": "message_start", "message": {"model": body["model"], "usage": input}})];
    for (index, block) in body["content"].as_array().unwrap().iter().enumerate() {
        let (mut start, mut deltas) = (block.clone(), Vec::new());
        for (kind, field, piece) in [
            ("text_delta", "text", "text"),
            ("thinking_delta", "thinking", "thinking"),
            ("signature_delta", "signature", "signature"),
            ("input_json_delta", "input", "partial_json"),
        ] {
            let Some(value) = block.get(field).filter(|value| !value.is_null()) else { continue };
            start[field] = if field == "input" { json!({}) } else { "".into() };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            deltas.extend(cut.text(&text).into_iter().map(|text| json!({"type": kind, piece: text})));
        }
        if cut != Cut::WithoutIndex || block["type"] == "tool_use" || block["type"] == "redacted_thinking" {
            events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        }
        let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": body["stop_reason"]}, "usage": output}));
    events.push(json!({"type": "message_stop"}));
    events
}
