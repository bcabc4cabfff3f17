//! Answers of a model, as a provider with OpenAI's API sends them.

use std::fmt::Display;

use redial_testkit::Reply;
use serde_json::{Value, json};

/// Makes an answer without calls.
pub fn says(text: &str) -> Reply {
    completion(&json!({"role": "assistant", "content": text}), "stop")
}

/// Makes an answer with calls; arguments as the model wrote them.
pub fn calls(text: &str, calls: &[(&str, impl Display)]) -> Reply {
    let call = |(n, (name, arguments)): (usize, &(&str, _))| {
        let function = json!({"name": name, "arguments": format!("{arguments}")});
        json!({"id": format!("call_{n}"), "type": "function", "function": function})
    };
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    completion(&json!({"role": "assistant", "content": text, "tool_calls": calls}), "tool_calls")
}

fn completion(message: &Value, finish: &str) -> Reply {
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 20});
    let body = json!({"id": "1", "model": "scripted-1", "choices": [choice], "usage": usage});
    Reply::json(&body.to_string())
}
