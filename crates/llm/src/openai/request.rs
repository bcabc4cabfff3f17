//! A conversation → the body of a request.

use redial_proto::{Language, Message, ToolOffer, TurnRequest};
use serde_json::{Map, Value, json};

use super::KIND;
use crate::{
    Arguments, Calls, Limit, Profile, Settings, Silence, System,
    ids::Minted,
    names::Names,
    schema,
    thread::{self, Call, Part},
    words,
};

/// The body of a request. Each call of an assistant message has its result directly after it, whatever the
/// conversation looks like.
pub fn request(request: &TurnRequest, settings: &Settings) -> Value {
    let names = Names::of(request);
    let mut body = Map::new();
    body.insert("model".to_owned(), settings.model.as_str().into());
    body.insert("messages".to_owned(), Messages::of(request, &names, settings.profile).into());
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(|tool| offered(tool, &names)).collect());
        // The interface's default, but llama-cpp-python shows a model its tools only if this is said (measured on 0.3.36).
        body.insert("tool_choice".to_owned(), "auto".into());
    }
    if let Some(tokens) = request.max_tokens.or(settings.max_tokens) {
        let field = match settings.profile.limit {
            Limit::MaxTokens => "max_tokens",
            Limit::MaxCompletionTokens => "max_completion_tokens",
        };
        body.insert(field.to_owned(), tokens.into());
    }
    if let Some(temperature) = request.temperature.or(settings.temperature) {
        body.insert("temperature".to_owned(), temperature.into());
    }
    if settings.stream {
        body.insert("stream".to_owned(), true.into());
        if settings.profile.stream_usage {
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
    }
    body.extend(settings.extra.clone());
    Value::Object(body)
}

fn offered(tool: &ToolOffer, names: &Names) -> Value {
    let (parameters, note) = schema::of(tool);
    let description = schema::description(names.description(tool), note);
    json!({
        "type": "function",
        "function": {"name": names.sent(&tool.name), "description": description, "parameters": parameters},
    })
}

/// The messages of a request, as they come together.
struct Messages<'a> {
    names: &'a Names,
    profile: Profile,
    language: Language,
    ids: Minted,
    /// Instructions that wait for a user message to stand in front of.
    instructions: Option<String>,
    done: Vec<Value>,
}

impl<'a> Messages<'a> {
    fn of(request: &TurnRequest, names: &'a Names, profile: Profile) -> Vec<Value> {
        let (ids, language) = (Minted::new(profile.ids), request.language);
        let mut messages = Self { names, profile, language, ids, instructions: None, done: Vec::new() };
        let parts = thread::read(&request.messages, language);
        match profile.system {
            System::Anywhere => {}
            System::First => messages.done.extend(instructions(&parts).as_deref().map(system)),
            System::User => messages.instructions = instructions(&parts),
        }
        for part in &parts {
            messages.add(part);
        }
        if messages.done.last().is_none_or(|last| last["role"] == "assistant" || last["role"] == "system") {
            messages.user(words::go_on(language));
        }
        messages.done
    }

    fn add(&mut self, part: &Part<'_>) {
        match part {
            Part::System(text) if self.profile.system == System::Anywhere && !text.trim().is_empty() => {
                self.done.push(system(text));
            }
            Part::System(_) => {}
            Part::User { text, .. } if text.trim().is_empty() => self.user(words::nothing(self.language)),
            Part::User { text, .. } => self.user(text),
            Part::Model { message, calls } => {
                if self.done.iter().all(|message| message["role"] == "system") {
                    self.user(words::beginning(self.language));
                }
                self.model(message, calls);
            }
        }
    }

    /// A user message; it goes on with the last one, because many templates want roles to alternate.
    fn user(&mut self, text: &str) {
        let text = &match self.instructions.take() {
            Some(instructions) => format!("{instructions}\n\n{text}"),
            None => text.to_owned(),
        };
        let after_result = self.profile.user_after_result;
        let goes_on = |last: &&mut Value| last["role"] == "user" || (last["role"] == "tool" && !after_result);
        match self.done.last_mut().filter(goes_on) {
            Some(last) => append(last, text),
            None => self.done.push(json!({"role": "user", "content": text})),
        }
    }

    fn model(&mut self, message: &Message, calls: &[Call<'_>]) {
        let text = Some(message.content.as_str()).filter(|text| !text.trim().is_empty());
        if let (Some(text), [], Some(last)) = (text, calls, self.done.last_mut())
            && last["role"] == "assistant"
        {
            // Two answers in a row, with no user in between: the second goes on with the first.
            return append(last, text);
        }
        let at_once = if self.profile.calls == Calls::One { 1 } else { calls.len().max(1) };
        let extras = Extras::of(message, calls.len());
        if calls.is_empty() {
            self.done.push(self.assistant(text, message, &extras));
        }
        for (group, calls) in calls.chunks(at_once).enumerate() {
            let ids: Vec<String> = calls.iter().map(|call| self.ids.of(call.id)).collect();
            let mut assistant = self.assistant(text.filter(|_| group == 0), message, &extras);
            let shown = calls.iter().zip(&ids).enumerate();
            assistant["tool_calls"] =
                shown.map(|(n, (call, id))| self.call(call, id, extras.call(group * at_once + n))).collect();
            self.done.push(assistant);
            for (call, id) in calls.iter().zip(ids) {
                self.done.push(json!({"role": "tool", "tool_call_id": id, "content": call.result}));
            }
        }
    }

    fn assistant(&self, text: Option<&str>, message: &Message, extras: &Extras<'_>) -> Value {
        let mut assistant = json!({"role": "assistant"});
        match (text, self.profile.silence) {
            (Some(text), _) => assistant["content"] = text.into(),
            (None, Silence::Null) => assistant["content"] = Value::Null,
            (None, Silence::Empty) => assistant["content"] = "".into(),
            (None, Silence::Absent) => {}
        }
        if let Some(thought) = message.thought.as_ref().filter(|_| self.profile.reasoning) {
            assistant["reasoning_content"] = thought.as_str().into();
        }
        if let Some(details) = extras.details {
            assistant["reasoning_details"] = details.clone();
        }
        assistant
    }

    fn call(&self, call: &Call<'_>, id: &str, extra: Option<&Value>) -> Value {
        let arguments = match self.profile.arguments {
            Arguments::Text => call.arguments.into(),
            Arguments::Object => Value::Object(call.object()),
        };
        let mut shown = json!({
            "id": id,
            "type": "function",
            "function": {"name": self.names.sent(call.tool), "arguments": arguments},
        });
        if let Some(extra) = extra {
            shown["extra_content"] = extra.clone();
        }
        shown
    }
}

fn append(message: &mut Value, text: &str) {
    let before = message["content"].as_str().unwrap_or_default();
    message["content"] = if before.is_empty() { text.into() } else { format!("{before}\n\n{text}").into() };
}

fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

/// All system messages in one.
fn instructions(parts: &[Part<'_>]) -> Option<String> {
    let texts = parts.iter().filter_map(|part| match part {
        Part::System(text) if !text.trim().is_empty() => Some(*text),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    (!text.is_empty()).then_some(text)
}

/// What some providers want back unchanged: see [`super::reply`].
struct Extras<'a> {
    details: Option<&'a Value>,
    calls: &'a [Value],
}

impl<'a> Extras<'a> {
    /// What stands beside calls belongs to them by place, so it is of no use once one of them was taken out.
    fn of(message: &'a Message, calls: usize) -> Self {
        let kept = message.provider.as_ref().filter(|kept| kept["kind"] == KIND);
        let beside = kept.and_then(|kept| kept.get("calls")?.as_array());
        Self {
            details: kept.and_then(|kept| kept.get("reasoning_details")),
            calls: beside.filter(|beside| beside.len() == calls).map_or(&[], Vec::as_slice),
        }
    }

    fn call(&self, n: usize) -> Option<&'a Value> {
        self.calls.get(n).filter(|extra| !extra.is_null())
    }
}
