//! Output items and events as JSON.

use serde_json::{Value, json};

use super::ids;
use redial_proto::CallId;

/// The label of the server of Redial's own tools.
const SERVER: &str = "redial";

pub(crate) fn message(id: &str, text: &str, status: &str) -> Value {
    let content = if status == "completed" { vec![part(text)] } else { Vec::new() };
    json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content})
}

pub(crate) fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// Makes the item of a call of a tool that workers serve.
pub(crate) fn tool_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "id": id, "type": "mcp_call", "server_label": SERVER, "name": name, "arguments": arguments, "output": null,
        "error": null, "status": "in_progress", "approval_request_id": null,
    })
}

/// Makes what the model was told of a call that failed.
pub(crate) fn tool_error(text: &str) -> Value {
    json!({"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]})
}

/// Makes the item of a call of a function that the client serves.
pub(crate) fn function_call(call: CallId, name: &str, arguments: &str, status: &str) -> Value {
    json!({
        "id": format!("fc_{}", call.0.simple()), "type": "function_call", "call_id": ids::of_call(call), "name": name,
        "arguments": arguments, "status": status,
    })
}

pub(crate) fn user_message(id: &str, text: &str) -> Value {
    json!({
        "id": id, "type": "message", "role": "user", "status": "completed",
        "content": [{"type": "input_text", "text": text}],
    })
}

pub(crate) fn function_output(call: CallId, output: &str) -> Value {
    json!({
        "id": format!("fco_{}", call.0.simple()), "type": "function_call_output", "call_id": ids::of_call(call),
        "output": output, "status": "completed",
    })
}
