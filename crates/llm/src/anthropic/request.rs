//! Maps a conversation to the body of a request.

use std::collections::BTreeSet;

use redial_proto::{Message, ToolOffer, TurnRequest};
use serde_json::{Map, Value, json};

use super::KIND;
use crate::{
    ids::CallIds,
    names::Names,
    placeholders,
    profile::Ids,
    schema,
    settings::Settings,
    transcript::{self, Call, Part},
};

/// The interface requires a limit; this one applies if neither the agent nor the model sets one.
const MAX_TOKENS: u32 = 4096;

/// Makes the body of a request. Roles alternate, the first and the last message are the user's, and all results of a
/// turn come first in the message after it.
pub fn request(request: &TurnRequest, settings: &Settings) -> Value {
    let names = Names::of(request);
    let parts = transcript::read(&request.messages, request.language);
    let mut body = Map::new();
    body.insert("model".to_owned(), settings.model.as_str().into());
    body.insert("max_tokens".to_owned(), request.max_tokens.or(settings.max_tokens).unwrap_or(MAX_TOKENS).into());
    if let Some(system) = system(&parts) {
        body.insert("system".to_owned(), system.into());
    }
    body.insert("messages".to_owned(), messages(request, &parts, &names).into());
    body.extend(tools(request, &parts, &names));
    // Thinking and a temperature exclude each other.
    if let Some(temperature) =
        request.temperature.or(settings.temperature).filter(|_| !settings.extra.contains_key("thinking"))
    {
        body.insert("temperature".to_owned(), temperature.clamp(0.0, 1.0).into());
    }
    if settings.stream {
        body.insert("stream".to_owned(), true.into());
    }
    body.extend(settings.extra.clone());
    Value::Object(body)
}

fn system(parts: &[Part<'_>]) -> Option<String> {
    let texts = parts.iter().filter_map(|part| match part {
        Part::System(text) if !text.trim().is_empty() => Some(*text),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    (!text.is_empty()).then_some(text)
}

/// Returns the offered tools; if there are none, those of the history, because calls are refused if no tools are
/// declared.
fn tools(request: &TurnRequest, parts: &[Part<'_>], names: &Names) -> Vec<(String, Value)> {
    if !request.tools.is_empty() {
        return vec![("tools".to_owned(), request.tools.iter().map(|tool| offered(tool, names)).collect())];
    }
    let calls = parts.iter().flat_map(|part| match part {
        Part::Model { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    let called: BTreeSet<&str> = calls.map(|call| names.sent(call.tool)).collect();
    if called.is_empty() {
        return Vec::new();
    }
    let empty = |name: &str| json!({"name": name, "input_schema": {"type": "object", "properties": {}}});
    vec![
        ("tools".to_owned(), called.into_iter().map(empty).collect()),
        ("tool_choice".to_owned(), json!({"type": "none"})),
    ]
}

fn offered(tool: &ToolOffer, names: &Names) -> Value {
    let (schema, note) = schema::of(tool);
    let description = schema::description(names.description(tool), note);
    json!({"name": names.sent(&tool.name), "description": description, "input_schema": schema})
}

fn messages(request: &TurnRequest, parts: &[Part<'_>], names: &Names) -> Vec<Value> {
    let mut turns = Turns::default();
    let mut ids = CallIds::new(Ids::Any);
    for part in parts {
        match part {
            Part::System(_) => {}
            Part::User { text, .. } if text.trim().is_empty() => {
                turns.add("user", text_block(placeholders::nothing(request.language)));
            }
            Part::User { text, .. } => turns.add("user", text_block(text)),
            Part::Model { message, calls } => {
                if turns.0.is_empty() {
                    turns.add("user", text_block(placeholders::beginning(request.language)));
                }
                // Thoughts are allowed only at the beginning of a message.
                if turns.0.last().is_none_or(|(role, _)| *role == "user") {
                    thinking(message).for_each(|block| turns.add("assistant", block.clone()));
                }
                if !message.content.trim().is_empty() {
                    turns.add("assistant", text_block(message.content.trim_end()));
                }
                let ids: Vec<String> = calls.iter().map(|call| ids.of(call.id)).collect();
                for (call, id) in calls.iter().zip(&ids) {
                    let name = names.sent(call.tool);
                    turns.add("assistant", json!({"type": "tool_use", "id": id, "name": name, "input": call.object()}));
                }
                for (call, id) in calls.iter().zip(&ids) {
                    turns.add("user", result(call, id));
                }
            }
        }
    }
    if turns.0.last().is_none_or(|(role, _)| *role == "assistant") {
        turns.add("user", text_block(placeholders::go_on(request.language)));
    }
    turns.0.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns signed thoughts, which are sent back unchanged, but only to the provider that signed them.
fn thinking(message: &Message) -> impl Iterator<Item = &Value> {
    let kept = message.provider.as_ref().filter(|kept| kept["kind"] == KIND);
    kept.and_then(|kept| kept["thinking"].as_array()).into_iter().flatten()
}

fn result(call: &Call<'_>, id: &str) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": id});
    if !call.result.trim().is_empty() {
        block["content"] = (&*call.result).into();
    }
    if call.failed {
        block["is_error"] = true.into();
    }
    block
}

/// Messages with alternating roles: a block of the same role is added to the last message.
#[derive(Default)]
struct Turns(Vec<(&'static str, Vec<Value>)>);

impl Turns {
    fn add(&mut self, role: &'static str, block: Value) {
        match self.0.last_mut() {
            Some((last, content)) if *last == role => content.push(block),
            _ => self.0.push((role, vec![block])),
        }
    }
}
