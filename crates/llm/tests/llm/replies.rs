//! One corpus of replies. Each is read as a whole body and as a stream that is cut in several ways, and means the same.

mod anthropic;
mod events;
mod openai;
mod properties;
mod surrogates;
mod text;

use redial_llm::{Api, read_response};
use redial_proto::{TurnReply, TurnRequest};
use serde_json::Value;

use crate::request::{request, tool};

fn asked() -> TurnRequest {
    TurnRequest { tools: vec![tool("get_weather"), tool("add"), tool("订机票")], ..request() }
}

/// Reads the reply to a whole body.
fn whole(api: Api, body: &Value) -> TurnReply {
    read_response(api, &asked(), body.to_string().as_bytes(), false).unwrap()
}

/// Reads the reply to a stream of these events.
fn streamed(api: Api, events: &[Value]) -> TurnReply {
    read_response(api, &asked(), lines(events).as_bytes(), true).unwrap()
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat()
}

/// Writes a reply in short: `[thought] name(arguments) "text" finish`.
fn short(reply: &TurnReply) -> String {
    let thought = reply.thought.as_ref().map(|thought| format!("[{thought}] ")).unwrap_or_default();
    let calls: Vec<_> = reply.calls.iter().map(|call| format!("{}({}) ", call.name, call.arguments)).collect();
    let calls = calls.concat();
    let text = reply.text.as_ref().map(|text| format!("{text:?} ")).unwrap_or_default();
    let finish = serde_json::to_value(reply.finish).unwrap();
    let problem = reply.problem.as_ref().map(|problem| format!(" problem: {problem}")).unwrap_or_default();
    format!("{thought}{calls}{text}{}{problem}", finish.as_str().unwrap())
}

/// Reads a body in both forms; each must give the wanted reply, and all the same one.
fn check(api: Api, name: &str, body: &Value, wanted: &str) {
    let reply = whole(api, body);
    assert_eq!(short(&reply), wanted, "{name}");
    for cut in events::CUTS {
        let events = events::of(api, body, cut);
        assert_eq!(streamed(api, &events), reply, "{name}, {cut:?}:\n{}", lines(&events));
    }
}
