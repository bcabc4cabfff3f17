//! What models and providers answer.

use redial_llm::{Api, react, read_response};
use redial_proto::{TaskId, ToolOffer, Trimmed, TurnReply, TurnRequest};
use serde_json::json;

use super::target::{Decoder, Target, texts};
use crate::corpus;

/// Text of models without function calling.
pub(super) const REACT: Target =
    Target { name: "ReAct text", weight: 200, corpus: || texts(&corpus::REACT), decoder: react };

/// Answers of the chat completions interface, whole and in events.
pub(super) const OPENAI: Target = Target {
    name: "OpenAI answer, SSE",
    weight: 160,
    corpus: || texts(&corpus::OPENAI),
    decoder: || provider(Api::OpenAi),
};

/// Answers of the messages interface, whole and in events.
pub(super) const ANTHROPIC: Target = Target {
    name: "Anthropic answer, SSE",
    weight: 160,
    corpus: || texts(&corpus::ANTHROPIC),
    decoder: || provider(Api::Anthropic),
};

fn request() -> TurnRequest {
    let offer = |name: &str| ToolOffer {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
        version: "1".to_owned(),
        polling: false,
        sequential: false,
        repairs: true,
    };
    TurnRequest {
        task: TaskId::generate(),
        turn: 1,
        messages: Vec::new(),
        tools: vec![offer("get_weather"), offer("订机票")],
        language: redial_proto::Language::En,
        max_tokens: None,
        temperature: None,
        trimmed: Trimmed::default(),
    }
}

fn react() -> Decoder {
    let request = request();
    Box::new(move |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let whole = react::read(&text, &request, false);
        let cut_off = react::read(&text, &request, true);
        usable(&whole) | usable(&cut_off)
    })
}

fn provider(api: Api) -> Decoder {
    let request = request();
    Box::new(move |bytes| {
        let one = |streamed| match read_response(api, &request, bytes, streamed) {
            Ok(reply) => usable(&reply),
            Err(failure) => {
                assert!(!failure.message.is_empty(), "an error without a message");
                false
            }
        };
        one(false) | one(true)
    })
}

/// It can be stored and read again; true if it is not malformed.
fn usable(reply: &TurnReply) -> bool {
    let written = serde_json::to_string(reply).unwrap_or_else(|error| panic!("it cannot be written: {error}"));
    let again = serde_json::from_str::<TurnReply>(&written);
    assert!(again.is_ok_and(|again| again == *reply), "it is not what was written: {written}");
    reply.problem.is_none()
}
