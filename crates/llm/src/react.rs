//! Tools for models without function calling: tools are offered and called in plain text (`Thought:` / `Action:` /
//! `Action Input:` / `Observation:` / `Answer:`), over any chat endpoint.

mod action;
mod block;
mod history;
mod labels;
mod parse;
mod prompt;

pub use history::chat;
pub use parse::read;

use redial_proto::{Finish, TurnReply, TurnRequest};
use serde_json::Value;

use crate::{openai, settings::Settings};

/// The text at which the model must stop, because it would invent the result after it.
pub const STOP: [&str; 1] = ["Observation:"];

/// The body of a request over the chat completions interface.
pub fn request(request: &TurnRequest, settings: &Settings) -> Value {
    let mut body = openai::request(&chat(request), settings);
    body["stop"] = Value::from(STOP.to_vec());
    body
}

/// Parses the text of a chat endpoint's reply.
pub(crate) fn reply(request: &TurnRequest, chat: TurnReply) -> TurnReply {
    if chat.problem.is_some() || !chat.calls.is_empty() || chat.finish == Finish::Refused {
        return chat;
    }
    let cut_off = chat.finish == Finish::Length;
    let read = read(chat.text.as_deref().unwrap_or_default(), request, cut_off);
    let thoughts: Vec<String> = chat.thought.into_iter().chain(read.thought).collect();
    TurnReply {
        thought: (!thoughts.is_empty()).then(|| thoughts.join("\n\n")),
        usage: chat.usage,
        model: chat.model,
        provider: None,
        ..read
    }
}
