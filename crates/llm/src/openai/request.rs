//! Maps a conversation to the body of a request.

use redial_proto::{Language, Message, ToolOffer, TurnRequest};
use serde_json::{Map, Value, json};

use super::KIND;
use crate::{
    ids::CallIds,
    names::Names,
    placeholders,
    profile::{Arguments, Calls, EmptyContent, Limit, Profile, System},
    schema,
    settings::Settings,
    transcript::{self, Call, Part},
};

/// Makes the body of a request. The results of an assistant message's calls follow it directly, in any conversation.
pub fn request(request: &TurnRequest, settings: &Settings) -> Value {
    let names = Names::of(request);
    let mut body = Map::new();
    body.insert("model".to_owned(), settings.model.as_str().into());
    body.insert("messages".to_owned(), Messages::of(request, &names, settings.profile).into());
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(|tool| offered(tool, &names)).collect());
        // This is the interface's default, but llama-cpp-python offers tools only if it is set (measured on 0.3.36).
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

struct Messages<'a> {
    names: &'a Names,
    profile: Profile,
    language: Language,
    ids: CallIds,
    /// Instructions that are put at the beginning of the next user message.
    instructions: Option<String>,
    done: Vec<Value>,
}

impl<'a> Messages<'a> {
    fn of(request: &TurnRequest, names: &'a Names, profile: Profile) -> Vec<Value> {
        let (ids, language) = (CallIds::new(profile.ids), request.language);
        let mut messages = Self { names, profile, language, ids, instructions: None, done: Vec::new() };
        let parts = transcript::read(&request.messages, language);
        match profile.system {
            System::Anywhere => {}
            System::First => messages.done.extend(instructions(&parts).as_deref().map(system)),
            System::User => messages.instructions = instructions(&parts),
        }
        for part in &parts {
            messages.add(part);
        }
        if messages.done.last().is_none_or(|last| last["role"] == "assistant" || last["role"] == "system") {
            messages.user(placeholders::go_on(language));
        }
        messages.done
    }

    fn add(&mut self, part: &Part<'_>) {
        match part {
            Part::System(text) if self.profile.system == System::Anywhere && !text.trim().is_empty() => {
                self.done.push(system(text));
            }
            Part::System(_) => {}
            Part::User { text, .. } if text.trim().is_empty() => self.user(placeholders::nothing(self.language)),
            Part::User { text, .. } => self.user(text),
            Part::Model { message, calls } => {
                if self.done.iter().all(|message| message["role"] == "system") {
                    self.user(placeholders::beginning(self.language));
                }
                self.model(message, calls);
            }
        }
    }

    /// Adds a user message, merged with a previous one, because many templates require alternating roles.
    fn user(&mut self, text: &str) {
        let text = &match self.instructions.take() {
            Some(instructions) => format!("{instructions}\n\n{text}"),
            None => text.to_owned(),
        };
        let after_result = self.profile.user_after_result;
        let merges = |last: &&mut Value| last["role"] == "user" || (last["role"] == "tool" && !after_result);
        match self.done.last_mut().filter(merges) {
            Some(last) => append(last, text),
            None => self.done.push(json!({"role": "user", "content": text})),
        }
    }

    fn model(&mut self, message: &Message, calls: &[Call<'_>]) {
        let text = Some(message.content.as_str()).filter(|text| !text.trim().is_empty());
        if let (Some(text), [], Some(last)) = (text, calls, self.done.last_mut())
            && last["role"] == "assistant"
        {
            // Two answers without a user message in between are merged.
            return append(last, text);
        }
        let group_size = if self.profile.calls == Calls::One { 1 } else { calls.len().max(1) };
        let extras = Extras::of(message, calls.len());
        if calls.is_empty() {
            self.done.push(self.assistant(text, message, &extras));
        }
        for (group, calls) in calls.chunks(group_size).enumerate() {
            let ids: Vec<String> = calls.iter().map(|call| self.ids.of(call.id)).collect();
            let mut assistant = self.assistant(text.filter(|_| group == 0), message, &extras);
            let shown = calls.iter().zip(&ids).enumerate();
            assistant["tool_calls"] =
                shown.map(|(n, (call, id))| self.call(call, id, extras.call(group * group_size + n))).collect();
            self.done.push(assistant);
            for (call, id) in calls.iter().zip(ids) {
                self.done.push(json!({"role": "tool", "tool_call_id": id, "content": call.result}));
            }
        }
    }

    fn assistant(&self, text: Option<&str>, message: &Message, extras: &Extras<'_>) -> Value {
        let mut assistant = json!({"role": "assistant"});
        match (text, self.profile.empty_content) {
            (Some(text), _) => assistant["content"] = text.into(),
            (None, EmptyContent::Null) => assistant["content"] = Value::Null,
            (None, EmptyContent::Empty) => assistant["content"] = "".into(),
            (None, EmptyContent::Absent) => {}
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

/// Joins all system messages.
fn instructions(parts: &[Part<'_>]) -> Option<String> {
    let texts = parts.iter().filter_map(|part| match part {
        Part::System(text) if !text.trim().is_empty() => Some(*text),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    (!text.is_empty()).then_some(text)
}

/// Data that some providers require unchanged: see [`super::reply`].
struct Extras<'a> {
    details: Option<&'a Value>,
    calls: &'a [Value],
}

impl<'a> Extras<'a> {
    /// Returns the extras of a message. They belong to calls by position, so they are useless once a call was removed.
    fn of(message: &'a Message, calls: usize) -> Self {
        let kept = message.provider.as_ref().filter(|kept| kept["kind"] == KIND);
        let extras = kept.and_then(|kept| kept.get("calls")?.as_array());
        Self {
            details: kept.and_then(|kept| kept.get("reasoning_details")),
            calls: extras.filter(|extras| extras.len() == calls).map_or(&[], Vec::as_slice),
        }
    }

    fn call(&self, n: usize) -> Option<&'a Value> {
        self.calls.get(n).filter(|extra| !extra.is_null())
    }
}
