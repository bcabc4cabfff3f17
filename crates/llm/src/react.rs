//! Tools for models without function calling: tools are offered and called in plain text (`Thought:` / `Action:` /
//! `Action Input:` / `Observation:` / `Answer:`), over any chat endpoint.

mod action;
mod block;
mod history;
mod keywords;
mod labels;
mod parse;
mod prompt;
mod unlabelled;

pub use history::chat;
pub use parse::read;

use redial_proto::{Finish, TurnReply, TurnRequest};
use serde_json::Value;

use crate::{openai, settings::Settings, thoughts};

/// The text at which the model must stop, because it would invent the result after it.
pub const STOP: [&str; 1] = ["Observation:"];

/// Makes the body of a request over the chat completions interface.
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
    // The provider's reason is kept if it is unknown: the text alone does not tell that it is complete.
    let finish = if read.finish == Finish::Stop { chat.finish } else { read.finish };
    let thoughts = [chat.thought, read.thought];
    TurnReply {
        thought: thoughts::join(thoughts.iter().flatten().map(String::as_str), "\n\n"),
        finish,
        usage: chat.usage,
        model: chat.model,
        provider: None,
        ..read
    }
}
