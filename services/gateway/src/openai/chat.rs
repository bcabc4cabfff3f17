//! A response in the form of a chat completion: the last text, or the function calls.

use axum::{http::StatusCode, response::Response};
use redial_proto::Code;
use redial_shares::Share;
use serde_json::{Value, json};

use super::{follow::Follow, ids::ResponseId, record::Record};
use crate::{
    events::{self, Progress, Source},
    gateway::Shared,
    problem::Problem,
    streams::sse::Page,
};

pub(crate) fn completion(record: &Record, id: ResponseId) -> Result<Value, Problem> {
    let Choice { text, calls, finish } = choice(record)?;
    let mut message = json!({"role": "assistant", "content": text, "refusal": null});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choices = json!([{"index": 0, "message": message, "finish_reason": finish, "logprobs": null}]);
    let mut body = envelope(record, id, "chat.completion", &choices);
    body["usage"] = cost(record);
    Ok(body)
}

struct Choice {
    text: Option<String>,
    calls: Vec<Value>,
    finish: &'static str,
}

/// Returns what the client gets of a response that is over.
fn choice(record: &Record) -> Result<Choice, Problem> {
    let of = |kind: &'static str| record.output().iter().filter(move |item| item["type"] == kind);
    let calls: Vec<Value> = of("function_call")
        .map(|item| {
            let function = json!({"name": item["name"], "arguments": item["arguments"]});
            json!({"id": item["call_id"], "type": "function", "function": function})
        })
        .collect();
    let text = of("message").next_back().and_then(|item| item["content"][0]["text"].as_str()).map(str::to_owned);
    let finish = match record.status() {
        "completed" if !calls.is_empty() => "tool_calls",
        "completed" => "stop",
        "incomplete" => "length",
        status => {
            let why = record.task().message.as_deref().unwrap_or("the task's record has the reason");
            let message = format!("task {} has no answer, it is {status}: {why}", record.task().task);
            return Err(Problem::new(Code::WrongState, message).with_status(StatusCode::INTERNAL_SERVER_ERROR));
        }
    };
    Ok(Choice { text, calls, finish })
}

fn envelope(record: &Record, id: ResponseId, object: &str, choices: &Value) -> Value {
    json!({
        "id": format!("chatcmpl_{}_{}", id.task.0.simple(), id.segment), "object": object,
        "created": record.created_at().timestamp(), "model": record.task().agent, "choices": choices,
    })
}

/// Returns the cost of the whole task, in the completion that ends it; the earlier ones count nothing.
fn cost(record: &Record) -> Value {
    let cost = record.usage().unwrap_or_default();
    let tokens = |name: &str| cost[name].as_u64().unwrap_or(0);
    json!({
        "prompt_tokens": tokens("input_tokens"), "completion_tokens": tokens("output_tokens"),
        "total_tokens": tokens("total_tokens"),
    })
}

struct Chunks {
    follow: Follow,
    id: ResponseId,
    with_usage: bool,
}

/// Sends comments while the agent works, then the text or the function calls at once.
pub(crate) fn chunks(gateway: Shared, follow: Follow, id: ResponseId, with_usage: bool, permit: Share) -> Response {
    let mut chunks = Chunks { follow, id, with_usage };
    let mut page = Page::default();
    page.raw(chunks.chunk(&json!({"role": "assistant", "content": ""}), None).as_bytes());
    let progress = chunks.show(&mut page);
    events::answer(gateway, permit, chunks, page, progress)
}

impl Source for Chunks {
    async fn news(&mut self) {
        self.follow.changed().await;
    }

    async fn read(&mut self, page: &mut Page) -> Result<Progress, Problem> {
        self.follow.read_page().await?;
        Ok(self.show(page))
    }
}

impl Chunks {
    fn show(&mut self, page: &mut Page) -> Progress {
        // A chunk has none of them.
        self.follow.take_events();
        if self.follow.record().is_over() {
            page.raw(self.rest().as_bytes());
        }
        self.follow.progress()
    }

    fn rest(&self) -> String {
        let record = self.follow.record();
        let Choice { text, calls, finish } = match choice(record) {
            Ok(choice) => choice,
            Err(problem) => {
                let body = crate::openai_error::body(&problem);
                return format!("data: {}\n\n", String::from_utf8_lossy(&body));
            }
        };
        let mut rest = String::new();
        if let Some(text) = text {
            rest += &self.chunk(&json!({"content": text}), None);
        }
        for (index, mut call) in calls.into_iter().enumerate() {
            call["index"] = index.into();
            rest += &self.chunk(&json!({"tool_calls": [call]}), None);
        }
        rest += &self.chunk(&json!({}), Some(finish));
        if self.with_usage {
            let mut last = envelope(record, self.id, "chat.completion.chunk", &json!([]));
            last["usage"] = cost(record);
            rest += &format!("data: {last}\n\n");
        }
        rest + "data: [DONE]\n\n"
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": null}]);
        let chunk = envelope(self.follow.record(), self.id, "chat.completion.chunk", &choices);
        format!("data: {chunk}\n\n")
    }
}
