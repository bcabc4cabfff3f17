//! Maps a conversation with calls to one in plain text.

use redial_proto::{Message, Role, TurnRequest};

use super::{labels, prompt};
use crate::{
    thoughts,
    transcript::{self, Call, Part},
};

/// Makes the request for a model without function calling: tools, format and the agent's instructions become one system
/// message, calls and results become text.
pub fn chat(request: &TurnRequest) -> TurnRequest {
    let parts = transcript::read(&request.messages, request.language);
    let mut messages = vec![Message::text(Role::System, prompt::system(request, &instructions(&parts)))];
    for (n, part) in parts.iter().enumerate() {
        match part {
            Part::System(_) => {}
            Part::User { text, by_redial } => {
                messages.push(Message { by_redial: *by_redial, ..Message::text(Role::User, *text) });
            }
            Part::Model { message, calls } if calls.is_empty() => {
                // A message of Redial follows only an unusable answer.
                let usable = !matches!(parts.get(n + 1), Some(Part::User { by_redial: true, .. }));
                messages.push(Message::text(Role::Assistant, answer(message, usable)));
            }
            Part::Model { message, calls } => {
                for (n, call) in calls.iter().enumerate() {
                    let thought = (n == 0).then(|| thought(message)).flatten();
                    messages.push(Message::text(Role::Assistant, action(thought, call)));
                    messages.push(Message::text(Role::User, observation(call)));
                }
            }
        }
    }
    TurnRequest { messages, tools: Vec::new(), ..request.clone() }
}

fn instructions(parts: &[Part<'_>]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::System(text) => Some(text.trim()),
        _ => None,
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn thought(message: &Message) -> Option<String> {
    let said = [message.thought.as_deref(), Some(message.content.as_str())];
    thoughts::join(said.into_iter().flatten(), "\n").map(|thought| quoted(&thought))
}

/// Marks each label at the beginning of a line of thoughts: there it is part of a thought, not an action.
fn quoted(thought: &str) -> String {
    let line = |line: &str| match labels::label(line) {
        Some(_) => format!("| {line}"),
        None => line.to_owned(),
    };
    thought.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn answer(message: &Message, usable: bool) -> String {
    if !usable {
        return message.content.clone();
    }
    let thought = thoughts::join(message.thought.as_deref(), "");
    let thought = thought.map(|thought| format!("Thought: {}\n", quoted(&thought))).unwrap_or_default();
    format!("{thought}Answer: {}", message.content)
}

fn action(thought: Option<String>, call: &Call<'_>) -> String {
    let thought = thought.map(|thought| format!("Thought: {thought}\n")).unwrap_or_default();
    format!("{thought}Action: {}\nAction Input: {}", call.tool, call.arguments)
}

fn observation(call: &Call<'_>) -> String {
    let label = if call.failed { "Error" } else { "Observation" };
    format!("{label}: {}", call.result)
}
