//! Damaged answers of models and providers: each is read or refused, without a panic.

#[path = "../../../tests/shared/damaged.rs"]
mod strategy;

use std::{ops::ControlFlow, sync::LazyLock};

use proptest::prelude::*;
use redial_proto::{Failure, TaskId, TurnReply, TurnRequest};
use serde_json::{Value, json};

use self::strategy::damaged;
use crate::{Api, failure, react, read_response, response::StreamedResponse};

/// Returns the texts of the corpus.
fn react_texts() -> Vec<String> {
    let corpus = include_str!("../tests/llm/react/corpus.txt").lines();
    corpus.filter_map(|line| line.strip_prefix("> ")).map(|text| text.replace('⏎', "\n")).collect()
}

/// Returns the bodies of replies, a stream of events, and errors.
fn answers(replies: &str, events: &str, body: fn(&Value) -> Value) -> Vec<String> {
    let bodies = replies.lines().map(|row| body(&serde_json::from_str(row).unwrap()).to_string());
    let stream = events.lines().map(|data| format!("data: {data}\n\n")).collect::<Vec<_>>().concat();
    let errors = [
        r#"{"error":{"message":"Rate limit","type":"rate_limit_error","code":"429"}}"#,
        "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
    ];
    bodies.chain([stream]).chain(errors.map(str::to_owned)).collect()
}

fn openai_answers() -> Vec<String> {
    let events = include_str!("../tests/llm/http/openai.txt");
    answers(
        include_str!("../tests/llm/replies/openai.jsonl"),
        events,
        |row| json!({"choices": [{"message": row["message"], "finish_reason": row["finish_reason"]}]}),
    )
}

fn anthropic_answers() -> Vec<String> {
    let events = include_str!("../tests/llm/http/anthropic.txt");
    answers(
        include_str!("../tests/llm/replies/anthropic.jsonl"),
        events,
        |row| json!({"content": row["content"], "stop_reason": row["stop_reason"]}),
    )
}

static REQUEST: LazyLock<TurnRequest> = LazyLock::new(|| {
    let tools = json!([{"name": "get_weather", "parameters": {}}, {"name": "订机票", "parameters": {}}]);
    TurnRequest {
        tools: serde_json::from_value(tools).unwrap(),
        ..crate::transcript::tests::request(TaskId::generate())
    }
});

/// Reads a text, which must be one call, an answer, or a problem.
fn react_text(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let one = |cut_off| {
        let reply = react::read(&text, &REQUEST, cut_off);
        let kinds = [!reply.calls.is_empty(), reply.text.is_some() && reply.problem.is_none(), reply.problem.is_some()];
        assert_eq!(kinds.iter().filter(|is| **is).count(), 1, "{reply:?}");
        assert!(reply.calls.len() <= 1, "{reply:?}");
        // A name comes from the text, except that JSON may escape it.
        assert!(reply.calls.iter().all(|call| text.contains(&call.name) || text.contains('\\')), "{reply:?}");
        usable(&reply)
    };
    one(false) | one(true)
}

fn answer(api: Api, bytes: &[u8]) -> bool {
    let one = |streamed| {
        let read = read_response(api, &REQUEST, bytes, streamed);
        if streamed {
            assert_eq!(in_pieces(api, bytes), read, "it matters how the stream arrives");
        }
        match read {
            Ok(reply) => usable(&reply),
            Err(failure) => {
                assert!(!failure.message.is_empty(), "an error without a message");
                false
            }
        }
    };
    one(false) | one(true)
}

fn in_pieces(api: Api, bytes: &[u8]) -> Result<TurnReply, Failure> {
    let mut streamed = StreamedResponse::new(api);
    let taken = bytes.chunks(7).try_for_each(|bytes| match streamed.take(bytes, &mut |_| ()) {
        Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
        Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
        Err(failure) => ControlFlow::Break(Err(failure)),
    });
    taken.break_value().unwrap_or(Ok(()))?;
    streamed.end(&REQUEST, Some(failure::incomplete()))
}

/// Stores a reply and reads it again; true if it is not malformed.
fn usable(reply: &TurnReply) -> bool {
    let written = serde_json::to_string(reply).unwrap();
    let again = serde_json::from_str::<TurnReply>(&written);
    assert!(again.is_ok_and(|again| again == *reply), "it is not what was written: {written}");
    reply.problem.is_none()
}

proptest! {
    #[test]
    fn damaged_react_texts_are_read(bytes in damaged(react_texts())) {
        react_text(&bytes);
    }

    #[test]
    fn damaged_answers_of_chat_completions_are_read_or_refused(bytes in damaged(openai_answers())) {
        answer(Api::OpenAi, &bytes);
    }

    #[test]
    fn damaged_answers_of_messages_are_read_or_refused(bytes in damaged(anthropic_answers())) {
        answer(Api::Anthropic, &bytes);
    }
}

/// Damage to documents that are refused anyway would test only the first line of a decoder.
#[test]
fn the_first_document_of_every_corpus_is_good() {
    assert!(react_text(react_texts()[0].as_bytes()));
    assert!(answer(Api::OpenAi, openai_answers()[0].as_bytes()));
    assert!(answer(Api::Anthropic, anthropic_answers()[0].as_bytes()));
}
