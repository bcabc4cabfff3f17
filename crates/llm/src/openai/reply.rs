//! Maps a response to a reply.

use redial_proto::{Finish, TurnReply, TurnRequest, TurnUsage};
use serde_json::{Value, json};

use super::{KIND, message::Message};
use crate::{finish, json as provider_json, offers::Offers, text, thoughts};

pub(super) struct Response<'a> {
    pub(super) message: Message,
    pub(super) finish: Option<&'a str>,
    pub(super) usage: &'a Value,
    pub(super) model: &'a str,
}

/// Reads a response body; `None` if it has no `choices` at all. The arguments of calls are kept as they were written.
pub fn reply(request: &TurnRequest, body: &Value) -> Option<TurnReply> {
    body.get("choices")?.as_array()?;
    let choice = Some(choice(body)).filter(|choice| !choice.is_null()).unwrap_or(&body["choices"][0]);
    let model = body["model"].as_str().unwrap_or_default();
    let usage = Some(&body["usage"]).filter(|usage| usage.is_object()).unwrap_or(&choice["usage"]);
    if !choice["message"].is_object() {
        let problem = Some("The answer was empty.".to_owned());
        let (usage, model) = (told(usage), model.to_owned());
        return Some(TurnReply { finish: Finish::Other, problem, usage, model, ..TurnReply::default() });
    }
    let message = Message::whole(&choice["message"]);
    Some(of(request, &Response { message, finish: choice["finish_reason"].as_str(), usage, model }))
}

/// Returns the first choice of a body or of a chunk; Redial asks for one.
pub(super) fn choice(body: &Value) -> &Value {
    let choices = body["choices"].as_array().map_or(&[][..], Vec::as_slice);
    choices.iter().find(|choice| choice["index"].as_u64().unwrap_or_default() == 0).unwrap_or(&Value::Null)
}

pub(super) fn of(request: &TurnRequest, response: &Response<'_>) -> TurnReply {
    let message = &response.message;
    let offers = Offers::of(request);
    let refusal = message.refusal();
    let calls = message.calls().replies(&offers);
    let read = text::read(&message.text(), message.thought(), calls, &offers, request.language);
    let finish = match &refusal {
        Some(_) => Finish::Refused,
        None => finish::read(response.finish, !read.calls.is_empty()),
    };
    TurnReply {
        text: read.text.or(refusal),
        thought: read.thought,
        calls: read.calls,
        finish,
        call_cut_off: false,
        problem: read.problem,
        usage: told(response.usage),
        model: response.model.to_owned(),
        provider: kept(message),
    }
}

/// Makes the reply for a call that the provider could not parse. Its error contains the text that the model wrote.
pub(crate) fn failed_generation(body: &[u8]) -> Option<TurnReply> {
    let body: Value = provider_json::read(body).ok()?;
    let error = body.get("error").filter(|error| error["code"] == "tool_use_failed")?;
    let written = thoughts::split(error["failed_generation"].as_str().unwrap_or_default());
    let text = written.rest.trim();
    Some(TurnReply {
        text: (!text.is_empty()).then(|| text.to_owned()),
        thought: written.thought,
        finish: Finish::Other,
        problem: Some("The call was not in the required format, so nothing was run.".to_owned()),
        ..TurnReply::default()
    })
}

fn told(usage: &Value) -> TurnUsage {
    let tokens = |fields: [&str; 2]| fields.iter().find_map(|field| usage[*field].as_u64());
    TurnUsage {
        input_tokens: tokens(["prompt_tokens", "input_tokens"]),
        output_tokens: tokens(["completion_tokens", "output_tokens"]),
        ..TurnUsage::default()
    }
}

/// Keeps data that some providers require unchanged in the next request: `reasoning_details` (OpenRouter), and
/// `extra_content` of calls, where Gemini puts the signatures of its thoughts.
fn kept(message: &Message) -> Option<Value> {
    let (details, extras) = (message.details(), message.calls().extras());
    if details.is_empty() && extras.is_empty() {
        return None;
    }
    let mut kept = json!({"kind": KIND});
    if !details.is_empty() {
        kept["reasoning_details"] = details.into();
    }
    if !extras.is_empty() {
        kept["calls"] = extras.into();
    }
    Some(kept)
}
