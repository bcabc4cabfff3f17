//! Tools for models that know no function calling: offered, called and answered in plain text
//! (`Thought:` / `Action:` / `Action Input:` / `Observation:` / `Answer:`), over any chat endpoint.

mod action;
mod history;
mod labels;
mod parse;
mod prompt;

pub use history::chat;
pub use parse::read;

use redial_proto::{Finish, TurnReply, TurnRequest};
use serde_json::Value;

use crate::{Settings, openai};

/// Where the model must stop: from here on it would invent the result.
pub const STOP: [&str; 1] = ["Observation:"];

/// The body of a request over the chat completions interface.
pub fn request(request: &TurnRequest, settings: &Settings) -> Value {
    let mut body = openai::request(&chat(request), settings);
    body["stop"] = Value::from(STOP.to_vec());
    body
}

/// The reply whose text stands in the reply of the chat endpoint.
pub(crate) fn reply(request: &TurnRequest, told: TurnReply) -> TurnReply {
    if told.problem.is_some() || !told.calls.is_empty() || told.finish == Finish::Refused {
        return told;
    }
    let cut_off = told.finish == Finish::Length;
    let read = read(told.text.as_deref().unwrap_or_default(), request, cut_off);
    let thoughts: Vec<String> = told.thought.into_iter().chain(read.thought).collect();
    TurnReply {
        thought: (!thoughts.is_empty()).then(|| thoughts.join("\n\n")),
        usage: told.usage,
        model: told.model,
        provider: None,
        ..read
    }
}
